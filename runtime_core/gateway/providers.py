"""Picks the model of a call: a provider's, or a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic_ai.models import Model

from runtime_core.errors import ModelNotConfigured
from runtime_core.gateway.loop import LoopThread
from runtime_core.gateway.script import Script, load_script
from runtime_core.gateway.scripted import ScriptedModel
from runtime_core.gateway.values import ModelCall


def script_at_hand(call: ModelCall) -> Script | None:
    """The script that plays the model for `call` without a pause; None if `model_for` has to be asked."""
    if call.model or getattr(settings, "INTERLOCK_MODEL", None) or not call.script:
        return None
    try:
        script = load_script(Path(settings.BASE_DIR) / call.script)
    except ModelNotConfigured:
        return None
    return None if script.chunk_ms else script


def model_for(call: ModelCall, loop: LoopThread) -> Model[Any]:
    """The model for `call`; on the loop only. Raises ModelNotConfigured, saying what to set."""
    if spec := call.model or getattr(settings, "INTERLOCK_MODEL", None):
        from runtime_core.gateway.provided import provided_model

        return provided_model(spec, loop)
    if call.script:
        return ScriptedModel(load_script(Path(settings.BASE_DIR) / call.script))
    raise ModelNotConfigured()
