"""Who is asking: credentials of a request or a socket, and the person (and token) they stand for right now.

Credentials are kept, a caller is not: long-lived streams resolve theirs again and again, so that a log-out, a new
password, a revoked token or a removed role ends them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from runtime_core import access, clock, ports
from runtime_core.access import Can
from runtime_core.errors import NotAllowed, NotFound, Unauthenticated
from runtime_core.models import ApiToken, Project
from runtime_core.values import Actor, Audit

_TOUCH_EVERY = dt.timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Caller:
    """An active person, by session or by a token that may narrow them to one project."""

    user: Any
    via: str
    token_project: uuid.UUID | None = None

    @property
    def actor(self) -> Actor:
        """This caller as events and audit name it."""
        return Actor(
            user_id=self.user.pk,
            name=self.user.get_username(),
            via=self.via,
            superuser=self.user.is_superuser,
        )

    def projects(self) -> QuerySet[Project]:
        """The projects this caller can see."""
        return access.visible_projects(self.user, self.token_project)

    def require(self, project_id: uuid.UUID, right: Can) -> None:
        """Pass if the caller has the right there; NotFound or NotAllowed (which is audited) otherwise."""
        if self.token_project not in (None, project_id):
            raise NotFound()
        try:
            access.require(self.user, project_id, right)
        except NotAllowed:
            self._audit_denial(project_id, right)
            raise

    def _audit_denial(self, project_id: uuid.UUID, right: Can) -> None:
        denial = Audit(
            action="access.denied",
            actor=self.actor,
            object_type="project",
            object_id=str(project_id),
            project_id=project_id,
            data={"right": right.name.lower()},
        )
        ports.audit().record([denial])


@dataclass(frozen=True, slots=True)
class Credentials:
    """A bearer token's text or a session's key, as they came with the request."""

    bearer: str | None = None
    session_key: str | None = None

    @classmethod
    def of(cls, authorization: str | None, cookies: Mapping[str, str]) -> Credentials:
        """What the headers carry; a bearer header wins over a cookie, however wrong it is."""
        if authorization is not None:
            return cls(bearer=_bearer_text(authorization))
        return cls(session_key=cookies.get(settings.SESSION_COOKIE_NAME))

    def caller(self) -> Caller:
        """Who that is at this moment, from the rows; Unauthenticated if nobody (any more)."""
        if self.bearer is not None:
            return _caller_of_token(self.bearer)
        if self.session_key:
            return _caller_of_session(self.session_key)
        raise Unauthenticated()


def _bearer_text(authorization: str) -> str:
    scheme, _, text = authorization.strip().partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _caller_of_token(text: str) -> Caller:
    now = clock.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=ApiToken.digest_of(text), revoked_at__isnull=True, user__is_active=True)
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))
        .first()
    )
    if token is None:
        raise Unauthenticated()
    if token.last_used_at is None or token.last_used_at < now - _TOUCH_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    via = "machine" if token.is_machine else "api"
    return Caller(user=token.user, via=via, token_project=token.project_id)


def _caller_of_session(key: str) -> Caller:
    # Django's own check: expiry, the password's hash in the session, and whether the user is active.
    request = HttpRequest()
    request.session = _Peek(import_module(settings.SESSION_ENGINE).SessionStore(key).load())  # type: ignore[assignment]
    user = get_user(request)
    if not user.is_authenticated:
        raise Unauthenticated()
    return Caller(user=user, via="web")


class _Peek(dict[str, Any]):
    """A session that a look cannot end: a tab that is just changing its password must not be logged out by us."""

    def flush(self) -> None:
        pass

    def cycle_key(self) -> None:
        pass
