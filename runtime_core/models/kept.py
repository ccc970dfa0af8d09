"""Rows that may be hidden before they go: nobody finds a hidden one, unless a query asks for `everything`."""

from __future__ import annotations

from typing import TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)


class Kept(models.Manager[M]):
    """The rows that are not being deleted. As the default it also serves the admin and relations to many."""

    def get_queryset(self) -> models.QuerySet[M]:
        """All but what was hidden."""
        return super().get_queryset().filter(deleted_at__isnull=True)


def of_kept(rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """Without the rows that belong to a hidden one: for whoever lists a table without asking for its run first."""
    for path in _paths(rows.model):
        rows = rows.filter(**{f"{path}__deleted_at": None})
    return rows


def _paths(model: type[models.Model]) -> list[str]:
    """From the model to what can be hidden, over at most one table between."""
    found = []
    for field in model._meta.concrete_fields:
        target = field.related_model
        if not isinstance(target, type) or target is model:
            continue
        if issubclass(target, models.Model):
            names = [one.name for one in target._meta.concrete_fields]
            if "deleted_at" in names:
                found.append(field.name)
            elif "interrupt" in names:
                found.append(f"{field.name}__interrupt")
    return found
