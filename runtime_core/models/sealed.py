"""A column whose text is stored sealed: code reads and writes the plain value of a row, the database never has it."""

from __future__ import annotations

import functools
import json
from typing import Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute

from runtime_core import vault
from runtime_core.sanitize import canonical


class Stored(bytes):
    """A value as the database has it."""


class _Opening(DeferredAttribute):
    """Opens the value of a row when it is first asked for."""

    field: SealedField

    def __get__(self, instance: models.Model | None, cls: Any = None) -> Any:
        value = super().__get__(instance, cls)
        if instance is not None and isinstance(value, Stored):
            value = self.field.opened(value, *self.field.identity_of(instance))
            instance.__dict__[self.field.attname] = value
        return value

    def __set__(self, instance: models.Model, value: Any) -> None:
        # Without it the instance's own dictionary would come first.
        instance.__dict__[self.field.attname] = value


class SealedField(models.BinaryField):  # type: ignore[type-arg]  # not generic at run time
    """Text, or with `as_json` a JSON value, sealed in the context of its row.

    `identity` names the fields that tell the row from all others and never change. Assign and save rows: an UPDATE
    over a queryset does not know whose value it would seal, and is refused. `values()` answers sealed bytes.
    """

    descriptor_class = _Opening

    def __init__(
        self, *args: Any, identity: tuple[str, ...] = ("id",), as_json: bool = False, **kwargs: Any
    ) -> None:
        self.identity, self.as_json = tuple(identity), as_json
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "identity": self.identity, "as_json": self.as_json}

    def from_db_value(self, value: bytes | None, expression: Any, connection: Any) -> bytes | None:
        return None if value is None else Stored(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = model_instance.__dict__.get(self.attname)
        if value is None or isinstance(value, Stored):
            return value
        return self.sealed(value, *self.identity_of(model_instance))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if value is not None and not isinstance(value, Stored):
            raise TypeError(f"{self.name} is sealed by its row: assign it there and save the row.")
        return super().get_db_prep_value(value, connection, prepared)

    def value_to_string(self, obj: models.Model) -> str:
        raise TypeError(f"{self.name} is sealed and is not written out.")

    def identity_of(self, instance: models.Model) -> tuple[Any, ...]:
        """What the row is told apart by."""
        return tuple(getattr(instance, name) for name in self.identity)

    def sealed(self, value: Any, *identity: Any) -> Stored:
        """The value as it is stored in the row with this identity."""
        return Stored(
            vault.seal(canonical(value) if self.as_json else value, self._context(identity))
        )

    def opened(self, blob: bytes, *identity: Any) -> Any:
        """The value that is stored so in the row with this identity; SealBroken if it does not open."""
        text = vault.open(blob, self._context(identity))
        return json.loads(text) if self.as_json else text

    def _context(self, identity: tuple[Any, ...]) -> str:
        return vault.context(self.model._meta.db_table, str(self.column), *identity)


@functools.cache
def sealed_fields(model: type[models.Model]) -> tuple[SealedField, ...]:
    """The sealed columns of a model."""
    return tuple(field for field in model._meta.concrete_fields if isinstance(field, SealedField))
