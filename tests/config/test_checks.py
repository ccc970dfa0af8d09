"""Configurations that would fail in silence are refused at the start."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from config.checks import require_sound_settings


def _ids() -> set[str | None]:
    return {message.id for message in run_checks()}


def test_the_shipped_configuration_passes() -> None:
    assert not _ids()


def test_c2_a_channel_layer_inside_one_process_is_refused() -> None:
    layer = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

    with override_settings(CHANNEL_LAYERS=layer):
        assert "config.E001" in _ids()


def test_c2_no_channel_layer_is_refused() -> None:
    with override_settings(CHANNEL_LAYERS={}):
        assert "config.E001" in _ids()


def test_j1_any_host_is_refused() -> None:
    with override_settings(ALLOWED_HOSTS=["*"]):
        assert "config.E002" in _ids()


def test_j1_a_server_without_checks_refuses_any_host_too() -> None:
    with override_settings(ALLOWED_HOSTS=["*"]), pytest.raises(ImproperlyConfigured, match="E002"):
        require_sound_settings()
