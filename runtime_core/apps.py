from __future__ import annotations

from django.apps import AppConfig


class RuntimeCoreConfig(AppConfig):
    name = "runtime_core"
    verbose_name = "Runtime"
    default_auto_field = "django.db.models.BigAutoField"
