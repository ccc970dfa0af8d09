"""Writes logins, logouts and failed logins into the audit."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver

from runtime_core import ports
from runtime_core.values import SYSTEM, Actor, Audit


@receiver(user_logged_in, dispatch_uid="audit.login")
def record_login(sender: Any, user: Any, **_: Any) -> None:
    """A person logged in."""
    _record("auth.login", user)


@receiver(user_logged_out, dispatch_uid="audit.logout")
def record_logout(sender: Any, user: Any, **_: Any) -> None:
    """A person logged out."""
    if user is not None and user.pk:
        _record("auth.logout", user)


@receiver(user_login_failed, dispatch_uid="audit.login_failed")
def record_failed_login(sender: Any, credentials: dict[str, Any], **_: Any) -> None:
    """A login failed. A name that no account has is not kept: people type passwords there."""
    name = str(credentials.get(get_user_model().USERNAME_FIELD, ""))[:150]
    user = get_user_model().objects.filter(**{get_user_model().USERNAME_FIELD: name}).first()
    ports.audit().record(
        [
            Audit(
                action="auth.login_failed",
                actor=Actor(None, SYSTEM.name, via="web"),
                object_type="user",
                object_id=str(user.pk) if user else "unknown",
            )
        ]
    )


def _record(action: str, user: Any) -> None:
    actor = Actor(user.pk, user.get_username(), via="web", superuser=user.is_superuser)
    ports.audit().record([Audit(action, actor, "user", str(user.pk))])
