"""Seals the raw texts of models, tools and people before they are stored, and opens them again.

    format | flags | key id (8) | salt (12) | nonce (12) | AES-256-GCM(text, maybe deflated) with its tag (16)

Bound with the text: everything before it, and a context that names table, row and column, so that no value can be
put in another's place. Each process encrypts under a key of its own, derived from the data key and a random salt:
random nonces then stay far from the number at which two could meet. A key's id says which data key opens a value;
a data key of one subject would be one more entry of the ring.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from runtime_core.errors import SealBroken

FORMAT = 1
# What a migration makes of a text that is not sealed yet; never opened.
UNSEALED = 0
# Where the id of the key stands in a sealed value, for SQL that counts or finds values by it.
KEY_ID_AT, KEY_ID_BYTES = 2, 8

_SALT_BYTES = _NONCE_BYTES = 12
_HEADER_BYTES = KEY_ID_AT + KEY_ID_BYTES + _SALT_BYTES
_BODY_AT = _HEADER_BYTES + _NONCE_BYTES
_DEFLATED, _PRIMED = 1, 2
_WORTH_DEFLATING = 32
# Longer values find enough repeats in themselves, and a larger window then pays.
_PRIMED_BELOW = 8_192
# Most of a short message is what every message says. Values refer to this text: it is never changed, only replaced by
# another one under a flag of its own.
_PRIMER = (
    b'{"step":,"node":"","nth":,"set":{}{"cut":0,"next_step":,"steps":}{"kind":"request","parts":[{"content":"",'
    b'"outcome":"success","part_kind":"user-prompt","timestamp":"2026-}],"state":"complete","timestamp":"2026-'
    b'{"finish_reason":"stop","kind":"response","model_name":"","parts":[{"content":"","part_kind":"thinking"},'
    b'{"content":"","part_kind":"text"}],"provider_details":{"finish_reason":"stop"},"provider_name":"openai",'
    b'"provider_response_id":"","state":"complete","timestamp":"2026-{"finish_reason":"tool_call","kind":"response",'
    b'"model_name":"","parts":[{"content":"","part_kind":"text"},{"args":"{\\"","part_kind":"tool-call",'
    b'"tool_call_id":"call_","tool_name":""}],"provider_details":{"script":"","turn":""},"provider_name":"script",'
    b'"provider_response_id":"","state":"complete","timestamp":"2026-","usage":{"input_tokens":,"output_tokens":}}'
    b'{"kind":"request","parts":[{"content":"","outcome":"success","part_kind":"tool-return","timestamp":"2026-",'
    b'"tool_call_id":"call_","tool_name":""}],"state":"complete","timestamp":"2026-'
)
# Raw deflate with a small window: setting up a large one costs more than deflating a short text.
_WINDOW, _MEMORY = -12, 4


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key that values are sealed under; `name` says where it comes from, never what it is."""

    name: str
    id: bytes
    secret: bytes


def seal(text: str, context: str) -> bytes:
    """`text` so that only this deployment's keys open it, and only in this `context`."""
    plain = text.encode("utf-8", "surrogatepass")
    flags = 0
    if len(plain) >= _WORTH_DEFLATING:
        deflated, how = _deflate(plain)
        if len(deflated) < len(plain):
            plain, flags = deflated, how
    key_id, salt, cipher = _sealer()
    header = bytes((FORMAT, flags)) + key_id + salt
    nonce = os.urandom(_NONCE_BYTES)
    return header + nonce + cipher.encrypt(nonce, plain, header + context.encode())


def open(blob: bytes, context: str) -> str:
    """The text of a sealed value; SealBroken if no key here opens it in this `context`."""
    blob = bytes(blob)
    if len(blob) < _BODY_AT or blob[0] != FORMAT:
        raise SealBroken(f"A stored value is not sealed as this release seals ({context}).")
    header, nonce = blob[:_HEADER_BYTES], blob[_HEADER_BYTES:_BODY_AT]
    key_id = header[KEY_ID_AT : KEY_ID_AT + KEY_ID_BYTES]
    cipher = _cipher(key_id, header[KEY_ID_AT + KEY_ID_BYTES :])
    if cipher is None:
        raise SealBroken(
            f"A stored value is sealed under the key {key_id.hex()}, which is not here ({context}); "
            "give it back in INTERLOCK_DATA_KEYS or SECRET_KEY_FALLBACKS."
        )
    try:
        plain = cipher.decrypt(nonce, blob[_BODY_AT:], header + context.encode())
    except InvalidTag:
        raise SealBroken(f"A stored value was changed or moved ({context}).") from None
    return _inflate(plain, blob[1]).decode("utf-8", "surrogatepass")


def _deflate(plain: bytes) -> tuple[bytes, int]:
    if len(plain) >= _PRIMED_BELOW:
        return zlib.compress(plain, 1), _DEFLATED
    maker = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _PRIMER)
    return maker.compress(plain) + maker.flush(), _PRIMED


def _inflate(plain: bytes, flags: int) -> bytes:
    if flags & _PRIMED:
        reader = zlib.decompressobj(_WINDOW, _PRIMER)
        return reader.decompress(plain) + reader.flush()
    return zlib.decompress(plain) if flags & _DEFLATED else plain


def context(table: str, column: str, *identity: object) -> str:
    """The one way to name where a value stands."""
    return "/".join((table, *map(str, identity), column))


@functools.cache
def ring() -> tuple[DataKey, ...]:
    """The keys of this process: the first seals, all open."""
    return tuple(_read_keys())


def forget_keys() -> None:
    """Read the keys from the settings anew."""
    for cached in (ring, _sealer, _cipher):
        cached.cache_clear()


def _read_keys() -> Iterator[DataKey]:
    seen: set[bytes] = set()
    for name, text in _secrets():
        secret = _derive(text.encode(), b"", b"interlock vault v1")
        key_id = hashlib.sha256(b"interlock key id\n" + secret).digest()[:KEY_ID_BYTES]
        if key_id not in seen:
            seen.add(key_id)
            yield DataKey(name, key_id, secret)


def _secrets() -> Iterator[tuple[str, str]]:
    for n, text in enumerate(settings.INTERLOCK_DATA_KEYS, start=1):
        yield f"INTERLOCK_DATA_KEYS, number {n}", text
    yield "SECRET_KEY", str(settings.SECRET_KEY)
    for n, text in enumerate(settings.SECRET_KEY_FALLBACKS, start=1):
        yield f"SECRET_KEY_FALLBACKS, number {n}", str(text)


@functools.cache
def _sealer() -> tuple[bytes, bytes, AESGCM]:
    key, salt = ring()[0], os.urandom(_SALT_BYTES)
    return key.id, salt, AESGCM(_derive(key.secret, salt, b"values"))


@functools.lru_cache(maxsize=4_096)
def _cipher(key_id: bytes, salt: bytes) -> AESGCM | None:
    secret = next((key.secret for key in ring() if key.id == key_id), None)
    return AESGCM(_derive(secret, salt, b"values")) if secret else None


def _derive(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=salt or None, info=purpose).derive(secret)
