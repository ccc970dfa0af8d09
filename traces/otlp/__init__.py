"""Spans sent to an OpenTelemetry receiver as they end; off until `INTERLOCK_OTLP_ENDPOINT` names one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from traces.otlp.queue import Exporter


@functools.cache
def exporter() -> Exporter | None:
    """The exporter of this process, if one is configured."""
    if not settings.INTERLOCK_OTLP_ENDPOINT:
        return None
    from traces.otlp.queue import Exporter  # only who exports pays for loading the SDK

    return Exporter(
        settings.INTERLOCK_OTLP_ENDPOINT,
        headers=settings.INTERLOCK_OTLP_HEADERS,
        content=settings.INTERLOCK_OTLP_CONTENT,
    )
