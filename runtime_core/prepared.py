"""Statements that are sent often: read and planned once a connection, and sent by libpq itself.

Django's cursor puts the values into the text, so that each is planned anew; the driver's own costs half as much again.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, models
from psycopg import abc, errors, pq
from psycopg.adapt import Transformer

_NAMED = re.compile(r"%\((\w+)\)s")

Row = tuple[Any, ...]
M = TypeVar("M", bound=models.Model)


def one(statement: str, params: Mapping[str, Any]) -> Row | None:
    """The first row that the statement answers."""
    found = rows(statement, params)
    return found[0] if found else None


def rows(statement: str, params: Mapping[str, Any]) -> list[Row]:
    """All rows that the statement answers."""
    text, names = numbered(statement)
    values = [params[name] for name in names]
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_no_broken_transaction()
    with database.wrap_database_errors:
        _begin(database.connection)
        return _answer(database.connection, text, values)


def instances(model: type[M], rest: str, **params: Any) -> list[M]:
    """Rows of the model by a constant `WHERE … ORDER BY …`, as the ORM would give them, without its making of SQL."""
    return [row for (row,) in joined([model], f'FROM "{model._meta.db_table}" {rest}', **params)]


def joined(kinds: Sequence[type[models.Model]], rest: str, **params: Any) -> list[Any]:
    """Rows of several models at once, a tuple of them each, by a constant `FROM … JOIN … WHERE …`."""
    selected = [_select(kind) for kind in kinds]
    columns = ", ".join(one[0] for one in selected)
    found = rows(f"SELECT {columns} {rest}", params)
    return [tuple(_made(kinds, selected, iter(row))) for row in found]


def _made(
    kinds: Sequence[type[models.Model]], selected: Sequence[_Selected], values: Iterator[Any]
) -> Iterator[models.Model]:
    database = connections[DEFAULT_DB_ALIAS]
    for kind, (_, names, converters) in zip(kinds, selected, strict=True):
        own = [
            convert(value, None, database) if convert else value
            for convert, value in zip(converters, values, strict=False)
        ]
        yield kind.from_db(DEFAULT_DB_ALIAS, names, own)


@functools.cache
def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement as PostgreSQL itself reads it, with $1, $2, …, and the names that these stand for."""
    names = tuple(dict.fromkeys(_NAMED.findall(statement)))
    return _NAMED.sub(lambda match: f"${names.index(match[1]) + 1}", statement), names


_Selected = tuple[str, list[str], list[Any]]


@functools.cache
def _select(model: type[models.Model]) -> _Selected:
    fields = model._meta.concrete_fields
    columns = ", ".join(f'"{model._meta.db_table}"."{field.column}"' for field in fields)
    converters = [getattr(field, "from_db_value", None) for field in fields]
    return columns, [field.attname for field in fields], converters


def _begin(raw: psycopg.Connection[Row]) -> None:
    """Begin the caller's transaction as the driver would with its first statement."""
    if raw.autocommit or raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return
    result = raw.pgconn.exec_(b"BEGIN")
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise _error(raw.pgconn, result)


def _answer(raw: psycopg.Connection[Row], text: str, values: Sequence[Any]) -> list[Row]:
    known: dict[str, bytes] = raw.__dict__.setdefault("_interlock_prepared", {})
    encoded, formats = _encoded(values)
    result = _run(raw.pgconn, known, text, encoded, formats)
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise _error(raw.pgconn, result)
    reader = raw.__dict__.get("_interlock_reader") or _reader(raw)
    reader.set_pgresult(result)
    return reader.load_rows(0, result.ntuples, tuple)


def _reader(raw: psycopg.Connection[Row]) -> abc.Transformer:
    """What reads answers, made once a connection: it looks up what reads each type."""
    reader: abc.Transformer = Transformer(raw)
    raw.__dict__["_interlock_reader"] = reader
    return reader


def _run(
    session: pq.abc.PGconn,
    known: dict[str, bytes],
    text: str,
    encoded: list[bytes | None],
    formats: Sequence[int],
) -> pq.abc.PGresult:
    name = known.get(text)
    if name is None:
        name = f"interlock_{len(known)}".encode()
        made = session.prepare(name, text.encode())
        if made.status != pq.ExecStatus.COMMAND_OK:
            raise _error(session, made)
        known[text] = name
    return session.exec_prepared(name, encoded, formats)  # type: ignore[arg-type]  # None is NULL


def _encoded(values: Sequence[Any]) -> tuple[list[bytes | None], Sequence[int]]:
    """The values as libpq takes them, and the format of each: bytes go as they are, everything else as text."""
    encoders, formats = _encoders_of(tuple(map(type, values)))
    return [encode(value) for encode, value in zip(encoders, values, strict=True)], formats


@functools.lru_cache(maxsize=1_024)
def _encoders_of(
    kinds: tuple[type, ...],
) -> tuple[list[Callable[[Any], bytes | None]], Sequence[int]]:
    """A statement's values are of the same few types each time."""
    encoders = [_ENCODERS.get(kind) or _inherited(kind) for kind in kinds]
    return encoders, [1 if encode is _bytes else 0 for encode in encoders]


def _inherited(kind: type) -> Callable[[Any], bytes | None]:
    for known in (bytes, str, int):
        if issubclass(kind, known):
            return _ENCODERS[known]
    raise TypeError(f"a {kind.__name__} is no value of a prepared statement")


def _bytes(value: bytes) -> bytes:
    return value


def _text(value: str) -> bytes:
    if "\0" in value:
        raise psycopg.DataError("PostgreSQL cannot hold NUL in a text")
    return value.encode()


def _list(value: list[Any]) -> bytes:
    """Numbers and ids alone: a text would have to be quoted."""
    return b"{%s}" % b",".join(_NUMBERS[type(item)](item) for item in value)


_NUMBERS: dict[type, Callable[[Any], bytes]] = {
    int: lambda value: b"%d" % value,
    uuid.UUID: lambda value: value.hex.encode(),
}
_ENCODERS: dict[type, Callable[[Any], bytes | None]] = {
    **_NUMBERS,
    type(None): lambda value: None,
    bytes: _bytes,
    str: _text,
    bool: lambda value: b"t" if value else b"f",
    float: lambda value: repr(value).encode(),
    dt.datetime: lambda value: value.isoformat().encode(),
    list: _list,
}


def _state(result: pq.abc.PGresult) -> str | None:
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    return state.decode() if state else None


def _error(session: pq.abc.PGconn, result: pq.abc.PGresult) -> psycopg.Error:
    if not _state(result):
        # The server gives every error of its own a state: this one is libpq's, of a connection that broke.
        return psycopg.OperationalError(session.get_error_message())
    return errors.error_from_result(result)
