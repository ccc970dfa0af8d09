"""Every table is on one of two lists: what goes with a run, and what stays, with its reason."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model

from traces.deletion.plan import KEPT, ROWS

# The tests' own app.
OF_TESTS = {"shop"}


def labels() -> set[str]:
    return {m._meta.label for m in apps.get_models() if m._meta.app_label not in OF_TESTS}


def test_every_model_is_classified_once() -> None:
    gone = [rows.model for rows in ROWS]
    assert len(gone) == len(set(gone))
    assert not set(gone) & set(KEPT)
    assert set(gone) | set(KEPT) == labels(), "say in traces/deletion/plan.py what becomes of it"


def test_what_refers_to_something_that_goes_goes_before_it() -> None:
    place = {rows.model: number for number, rows in enumerate(ROWS)}
    for label, number in place.items():
        for target in targets(apps.get_model(label)):
            assert place.get(target, number) >= number, f"{label} refers to {target}"
    for label in KEPT:
        found = set(targets(apps.get_model(label))) & set(place)
        assert not found, f"{label} stays and refers to {found}"


def targets(model: type[Model]) -> list[str]:
    related = [field.related_model for field in model._meta.concrete_fields if field.is_relation]
    return [one._meta.label for one in related if isinstance(one, type) and one is not model]
