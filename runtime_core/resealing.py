"""Brings stored values under the key that seals now, in small transactions: it can be stopped at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection

from runtime_core import vault
from runtime_core.errors import SealBroken
from runtime_core.models.sealed import sealed_fields
from runtime_core.transactions import one_commit

BATCH = 200
# A row that somebody holds is left for the next pass.
_PASSES = 10
_KEY_ID = f"substring({{column}} from {vault.KEY_ID_AT + 1} for {vault.KEY_ID_BYTES})"


@dataclass(frozen=True, slots=True)
class Column:
    """A sealed column, its row's key, and what else tells its rows apart."""

    table: str
    name: str
    identity: tuple[str, ...] = ("id",)

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


def columns() -> list[Column]:
    """Every sealed column of the product."""
    return [
        Column(model._meta.db_table, str(field.column), field.identity)
        for model in apps.get_models()
        for field in sealed_fields(model)
    ]


def counts(column: Column) -> dict[bytes | None, int]:
    """How many values there are under each key id; None stands for those that are not sealed."""
    query = (
        f"SELECT CASE WHEN get_byte({{column}}, 0) = {vault.FORMAT} THEN {_KEY_ID} END, count(*) "
        "FROM {table} WHERE {column} IS NOT NULL GROUP BY 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(_of(column, query))
        return {None if key is None else bytes(key): n for key, n in cursor.fetchall()}


def rotate(column: Column) -> Iterator[int]:
    """Seal what is under another key anew; yields how many after each batch. What does not open stays as it is."""
    others = f"{_KEY_ID} <> %s"
    for _ in range(_PASSES):
        done = 0
        for n in _batches(column, others, vault.ring()[0].id, _opened):
            done += n
            yield n
        if not done:
            return


def seal_first(column: Column) -> Iterator[int]:
    """Seal what a migration has left unsealed; yields how many after each batch."""
    yield from _batches(column, "get_byte({column}, 0) = %s", vault.UNSEALED, _unsealed)


def _opened(blob: bytes, context: str) -> str | None:
    try:
        return vault.open(blob, context)
    except SealBroken:
        return None


def _unsealed(blob: bytes, context: str) -> str:
    return blob[1:].decode()


def _batches(
    column: Column, which: str, value: Any, text_of: Callable[[bytes, str], str | None]
) -> Iterator[int]:
    last: Any = None
    while True:
        with one_commit("reseal"):
            last, done, seen = _batch(column, which, value, text_of, last)
        if not seen:
            return
        yield done


def _batch(
    column: Column,
    which: str,
    value: Any,
    text_of: Callable[[bytes, str], str | None],
    last: Any,
) -> tuple[Any, int, int]:
    """One batch behind the row `last`: its last row, and how many were sealed of how many."""
    behind, values = ("AND id > %s", [value, last]) if last is not None else ("", [value])
    select = (
        f"SELECT id, {{column}}, {{identity}} FROM {{table}} WHERE {which} {behind} "
        f"ORDER BY id LIMIT {BATCH} FOR UPDATE SKIP LOCKED"
    )
    done = 0
    with connection.cursor() as cursor:
        cursor.execute(_of(column, select), values)
        rows = cursor.fetchall()
        for key, blob, *identity in rows:
            context = vault.context(column.table, column.name, *identity)
            text = text_of(bytes(blob), context)
            if text is not None:
                update = "UPDATE {table} SET {column} = %s WHERE id = %s"
                cursor.execute(_of(column, update), [vault.seal(text, context), key])
                done += 1
    return (rows[-1][0] if rows else last), done, len(rows)


def _of(column: Column, query: str) -> str:
    return query.format(
        table=f'"{column.table}"',
        column=f'"{column.name}"',
        identity=", ".join(f'"{name}"' for name in column.identity),
    )
