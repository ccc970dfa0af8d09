"""Refuses configurations that would fail in silence or open a hole."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured


@register(Tags.compatibility)
def refuse_in_memory_channel_layer(**_: Any) -> list[CheckMessage]:
    """Web and worker are separate processes: a layer inside one of them reaches nobody."""
    backend = settings.CHANNEL_LAYERS.get("default", {}).get("BACKEND", "")
    if "InMemory" not in backend and backend:
        return []
    return [
        Error(
            "The channel layer lives inside one process, so nothing a worker sends can arrive.",
            hint="Use channels_redis.pubsub.RedisPubSubChannelLayer in CHANNEL_LAYERS.",
            id="config.E001",
        )
    ]


@register(Tags.security)
def refuse_any_host(**_: Any) -> list[CheckMessage]:
    """`*` would let any page of the web open our sockets with a visitor's cookie."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Error(
            "ALLOWED_HOSTS contains '*'.",
            hint="Name the hosts, e.g. ALLOWED_HOSTS=interlock.example.com.",
            id="config.E002",
        )
    ]


def require_sound_settings() -> None:
    """Raise `ImproperlyConfigured` for what a server that runs no checks must refuse as well."""
    for message in (*refuse_in_memory_channel_layer(), *refuse_any_host()):
        raise ImproperlyConfigured(f"{message.msg} {message.hint} ({message.id})")
