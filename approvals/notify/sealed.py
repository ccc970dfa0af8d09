"""Addresses and keys of endpoints at rest: sealed with a key that comes from SECRET_KEY."""

from __future__ import annotations

import base64
import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from runtime_core.errors import InvalidInput

_INFO = b"interlock endpoint"


def seal(text: str) -> str:
    """The text as it is stored."""
    return _box().encrypt(text.encode()).decode()


def unseal(stored: str) -> str:
    """The text again; InvalidInput if SECRET_KEY has become another one meanwhile."""
    try:
        return _box().decrypt(stored.encode()).decode()
    except InvalidToken:
        raise InvalidInput(
            "The endpoint was stored under another SECRET_KEY; enter its address again, or list the "
            "old key in SECRET_KEY_FALLBACKS."
        ) from None


@functools.cache
def _box() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO)
    return base64.urlsafe_b64encode(hkdf.derive(key.encode()))
