"""Composes the three apps: settings, urls, processes, embedded services.

Importing it makes the Celery app the current one, so that `shared_task` binds to it.
"""

from __future__ import annotations

from config.celery import app as celery_app

__all__ = ["celery_app"]
