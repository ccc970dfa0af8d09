"""Deleting a person: what they started and what is their own goes; the account stays as an empty shell for evidence."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from runtime_core.errors import InvalidInput, NotFound
from runtime_core.models import Run, Thread
from runtime_core.values import Actor
from traces.deletion.plan import OF_PERSON
from traces.deletion.purge import delete_batch
from traces.deletion.requests import ask
from traces.models import DeletionRequest


def delete_person(actor: Actor, user_id: int, reason: str = "") -> DeletionRequest:
    """Hide all that a person started, take their own rows and name away, and let them sign in no more.

    NotFound, InvalidInput for oneself, NotEnded, Held. What they decided on others' runs stays as evidence.
    """
    person = User.objects.filter(pk=user_id).first()
    if person is None:
        raise NotFound("There is no such person.")
    if actor.user_id == user_id:
        raise InvalidInput("Nobody deletes themselves; ask another superuser.", field="user")
    request = DeletionRequest(kind=DeletionRequest.Kind.USER, object_id=str(user_id))
    runs = Run.objects.filter(created_by=person).values_list("id", flat=True)
    threads = Thread.objects.filter(created_by=person).values_list("id", flat=True)
    return ask(actor, request, reason, list(runs), list(threads), _forget)


def _forget(request: DeletionRequest) -> None:
    user_id = int(request.object_id)
    for rows in OF_PERSON:
        delete_batch(request, rows, {"user": user_id}, everything=True)
    for session in Session.objects.iterator():
        if str(session.get_decoded().get("_auth_user_id")) == request.object_id:
            session.delete()
    person = User.objects.select_for_update().get(pk=user_id)
    person.username = f"deleted-{user_id}"
    person.first_name = person.last_name = person.email = ""
    person.is_active = person.is_staff = person.is_superuser = False
    person.set_unusable_password()
    person.save()
    person.groups.clear()
    person.user_permissions.clear()
