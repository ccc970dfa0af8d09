"""The Django app of the demo's shop."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Orders and refunds."""

    name = "evals.shop"
    label = "shop"
    verbose_name = "Demo shop"
