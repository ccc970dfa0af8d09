"""Registers `config` as an app, for its commands and system checks."""

from __future__ import annotations

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Configuration"

    def ready(self) -> None:
        from config import checks  # noqa: F401  (registers the system checks)
