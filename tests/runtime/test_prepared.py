"""Statements sent by libpq itself: the same values, the same errors and the same transactions as by the driver."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from runtime_core import prepared
from runtime_core.models import Project
from runtime_core.states import RunStatus

_SHOW = """
SELECT %(text)s::text, %(number)s::bigint, %(real)s::float8, %(yes)s::bool, %(id)s::uuid, %(at)s::timestamptz,
    %(raw)s::bytea, %(none)s::text, %(ids)s::bigint[]
"""
_ADD = """
INSERT INTO project (id, slug, name, created_at) VALUES (%(id)s, %(slug)s, 'x', now()) RETURNING slug
"""


@pytest.mark.django_db(transaction=True)
def test_values_come_back_as_they_were() -> None:
    at = dt.datetime(2026, 11, 29, 12, 30, 1, 5, tzinfo=dt.UTC)
    sent = {
        "text": "ü \\ ' \" \n", "number": -(2**62), "real": 0.1, "yes": True, "id": uuid.UUID(int=7),
        "at": at, "raw": b"\x00\xff", "none": None, "ids": [1, 2],
    }  # fmt: skip
    assert prepared.one(_SHOW, sent) == tuple(sent.values())
    assert prepared.rows("SELECT %(it)s::text", {"it": RunStatus.PENDING}) == [("pending",)]
    with pytest.raises(DataError):
        prepared.one("SELECT %(it)s::text", {"it": "a\x00b"})
    with pytest.raises(TypeError):
        prepared.one("SELECT %(it)s::text", {"it": {"a": 1}})


@pytest.mark.django_db(transaction=True)
def test_a_write_joins_the_callers_transaction_and_a_refused_one_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert prepared.one(_ADD, {"id": uuid.UUID(int=1), "slug": "gone"}) == ("gone",)
        assert Project.objects.filter(slug="gone").exists()
        raise ZeroDivisionError
    assert not Project.objects.filter(slug="gone").exists()

    prepared.one(_ADD, {"id": uuid.UUID(int=1), "slug": "kept"})
    with pytest.raises(IntegrityError):
        prepared.one(_ADD, {"id": uuid.UUID(int=2), "slug": "kept"})
    assert [p.slug for p in prepared.instances(Project, "WHERE slug = %(slug)s", slug="kept")] == [
        "kept"
    ]


@pytest.mark.django_db(transaction=True)
def test_it_is_planned_once_a_connection_and_again_on_the_next() -> None:
    for _ in range(2):
        for number in range(3):
            assert prepared.one("SELECT %(n)s::int + 1", {"n": number}) == (number + 1,)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%+ 1'"
            )
            assert cursor.fetchone() == (1,)
        connection.close()
