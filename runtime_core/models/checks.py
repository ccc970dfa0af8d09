"""What the hot tables are checked by, in forms that are cheap: the server reads each check anew for each statement."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Least
from django.db.models.lookups import GreaterThanOrEqual


class OneOf(models.Func):
    """True if the column holds one of these words: a constant, where `IN` is a list that is folded each time."""

    template = "(%(expressions)s))"
    arg_joiner = " = ANY ("
    output_field = models.BooleanField()

    def __init__(self, column: Any, words: Any, **extra: Any) -> None:
        """`words` are plain: letters, digits and `_`, or nothing at all."""
        if not isinstance(words, models.Value):
            words = models.Value("{" + ",".join(f'"{word}"' for word in words) + "}")
        super().__init__(column, words, **extra)


def never_negative(*columns: str) -> GreaterThanOrEqual:
    """One check for all counts of a table, so that its integer fields need none of their own; NULL is no count."""
    return GreaterThanOrEqual(Least(*columns, output_field=models.BigIntegerField()), 0)
