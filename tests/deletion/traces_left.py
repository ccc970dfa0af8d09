"""Looks for a text in every column of every table of the database, whatever they are."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection


def tables() -> list[str]:
    """Every table that there is."""
    with connection.cursor() as cursor:
        return connection.introspection.table_names(cursor)


def where(texts: Collection[str]) -> dict[str, int]:
    """The tables in which a row holds one of these texts, and how many such rows each has."""
    found = {}
    patterns = [f"%{text}%" for text in texts]
    with connection.cursor() as cursor:
        for table in tables():
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT count(*) FROM {name} r WHERE r::text ILIKE ANY(%s)", [patterns])  # noqa: S608
            if number := cursor.fetchone()[0]:
                found[table] = number
    return found
