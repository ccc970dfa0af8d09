"""Hints: what the names in one mapping, taken together, say about its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from traces.redact.keys import (
    Key,
    classify_key,
    classify_personal,
    is_harmless_inside,
    is_secret_container,
)
from traces.redact.plain import json_key

_NAME_FIELDS = ("name", "key", "Name", "Key", "field", "label", "header", "variable", "id", "path")
_VALUE_FIELDS = frozenset(
    "value val Value secret_value current raw computed plaintext plain text content data".split()
)
# A tool's message has a name and a content too, so beside a name fewer fields count.
_NAMED_VALUE_FIELDS = _VALUE_FIELDS - {"text", "content", "data", "plain", "current"}
_SCHEMA_FIELDS = frozenset(
    "type $ref title description format properties minLength min_length minlength anyOf enum items".split()
)
_JWK_SECRETS = frozenset("d p q dp dq qi k".split())
_CONCEALED = frozenset("concealed securestring password secret sensitive hidden".split())


class Hints:
    """What the names in one mapping say about its values."""

    def __init__(self, fields: Mapping[str, Any], above: Key | None) -> None:
        self._above = above
        self._named = _named_key(fields)
        self._is_secret_object = fields.get("kind") == "Secret"
        self._is_vault_reply = (
            "lease_duration" in fields or "lease_id" in fields or _is_versioned(fields)
        )
        self._is_jwk = "kty" in fields
        self._is_schema = bool(_SCHEMA_FIELDS & fields.keys())

    def of(self, name: str, item: Any, whole: bool) -> tuple[Key | None, bool]:
        """Return the key and whether everything below is secret, for the value under `name`."""
        if whole:
            return (None, False) if is_harmless_inside(name) else (classify_key(name), True)
        if is_secret_container(name) and isinstance(item, (Mapping, list, tuple)):
            return None, not _describes_secrets(item)
        if self._is_secret_object and name in ("data", "stringData"):
            return None, True
        if self._is_vault_reply and name == "data" and isinstance(item, Mapping):
            return None, not isinstance(item.get("data"), Mapping)
        if self._is_jwk and name in _JWK_SECRETS:
            return Key("private_key", True), False
        return self._key_of(name, item), False

    def _key_of(self, name: str, item: Any) -> Key | None:
        if self._named is not None and name in _NAMED_VALUE_FIELDS:
            return self._named
        if self._above is not None and name in _VALUE_FIELDS and not self._is_schema:
            return self._above
        key = classify_key(name)
        if key is None:
            personal = classify_personal(name)
            return Key(personal, False) if personal else None
        if isinstance(item, Mapping) and (_SCHEMA_FIELDS & {json_key(k) for k in item}):
            return None
        return key


def _is_versioned(fields: Mapping[str, Any]) -> bool:
    """The inner part of a reply of a versioned key/value store."""
    metadata = fields.get("metadata")
    return (
        isinstance(metadata, Mapping)
        and isinstance(fields.get("data"), Mapping)
        and "version" in metadata
    )


def _named_key(fields: Mapping[str, Any]) -> Key | None:
    """`{"name": "DB_PASSWORD", "value": …}`: the name is the value of another field."""
    kind = fields.get("type") or fields.get("Type")
    if (
        isinstance(kind, str)
        and kind.lower() in _CONCEALED
        and not ({"properties", "required"} & fields.keys())
    ):
        return Key("secret", True)
    for field in _NAME_FIELDS:
        named = fields.get(field)
        if isinstance(named, str) and len(named) <= 256:
            key = classify_key(re.split(r"[/:]", named)[-1])
            if key is not None:
                return key
            if ".vault.azure.net/secrets/" in named or "/secrets/" in named:
                return Key("secret", True)
    return None


def _describes_secrets(item: Any) -> bool:
    """A list of the names of secrets, or a mapping of name to file, holds no secret itself."""
    if isinstance(item, Mapping):
        inside = list(item.values())
        return bool(inside) and all(
            isinstance(part, Mapping)
            and part.keys()
            & {"file", "external", "name", "from", "source", "secretName", "environment"}
            for part in inside
        )
    return bool(item) and all(
        (
            isinstance(part, Mapping)
            and part.keys() & {"name", "source", "secretName"}
            and not part.keys() & {"value", "data"}
        )
        for part in item
    )


def is_secret_name(text: str) -> bool:
    """Say whether text is the name of a secret, as in a list of secrets to mount."""
    return re.fullmatch(r"[A-Za-z]+(?:[_.-][A-Za-z]+)+", text) is not None and (
        classify_key(text) is not None
        or text.lower().endswith(("-creds", "_creds", "-cert", "_cert", "-tls", "-keys", "_keys"))
    )
