"""The Celery app: carries hints to the workers and the beat's ticks, never a result."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("interlock")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Every app's `tasks` module, and those of rooms that keep theirs to themselves.
app.autodiscover_tasks()
app.autodiscover_tasks(["runtime_core.scheduling"])
