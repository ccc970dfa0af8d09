from __future__ import annotations

from django.apps import AppConfig


class TracesConfig(AppConfig):
    name = "traces"
    verbose_name = "Traces and audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from traces import gate
        from traces.audit import sign_ins  # noqa: F401  (connects the signals)

        gate.guard_process()
