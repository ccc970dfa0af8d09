"""Addresses and headers: passwords in URLs, secret query fields, connection strings, cookies."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from traces.redact.keys import classify_key
from traces.redact.literal import is_placeholder, is_shaped
from traces.redact.marker import Span

_ADDRESS = re.compile(r"""[^\s"'\\<>`]{1,400}""")
_HOST_START = re.compile(r"[\w\[.$%*-]")
_ORACLE = re.compile(
    r"""(?:thin:|sqlplus\s{1,3}(?:-\w\s{1,2})?|exp\s|imp\s|expdp\s|impdp\s|userid=|rman\s+target\s)(?P<user>[\w.$#-]{1,40})/(?P<v>[^\s/@"']{3,128})@""",
    re.IGNORECASE,
)
_QUERY = re.compile(r"""(?P<k>[A-Za-z_][\w.\-\[\]]{0,63})=(?P<v>[^&\s"'<>#\\;]{1,4096})""")
_AUTHORIZATION = re.compile(
    r"""(?ix)(?:proxy-)?authorization (?:\\{0,15}["'`])?\]? \s{0,8} (?:[:=,]|=>) \s{0,8} (?:\\{0,15}["'`]|\[\s?\\{0,15}["'`])?
    (?:(?P<scheme>bearer|basic|token|apikey|api-key|digest|negotiate|ntlm|bot|key|gitlab-token|sso-key|hmac|signature|splunk|pat|oauth|oauth2|zoho-oauthtoken|ssws|klaviyo-api-key|discogs|genie-?key) \s{1,3} (?:token=)?)?
    (?P<v>[^\s"'`,;\\<>]{3,8192})"""
)
_BEARER = re.compile(r"bearer\s{1,3}(?P<v>[\w.~+/=-]{12,8192})", re.IGNORECASE)
_BASIC = re.compile(r"basic\s{1,2}(?P<v>[A-Za-z0-9+/]{8,2048}={0,2})", re.IGNORECASE)
_SIGNATURE = re.compile(
    r"signature=(?P<v>[0-9a-fA-F]{40,128}|[\w%+/-]{40,120}={0,2})", re.IGNORECASE
)
_DIGEST = re.compile(r"""(?:response|cnonce)="(?P<v>[0-9a-f]{32,64})\"""", re.IGNORECASE)
_COOKIE = re.compile(
    r"""cookie2?(?:\\{0,15}["'`])?\]?[ ]{0,4}[:=][ ]{0,4}(?:\\{0,15}["'`])?(?P<v>[^\r\n"'`]{3,4096})""",
    re.IGNORECASE,
)
_COOKIE_HEAD = re.compile(r"cookie2?(?:\\{0,15}[\"'`])?\]?[ ]{0,4}[:=]", re.IGNORECASE)
_CRUMB = re.compile(r"(?P<k>[\w.\-]{1,64})=(?P<v>[^;\s\\,]{4,4096})")
_COOKIE_SETTINGS = frozenset(
    "path domain expires max-age samesite priority version httponly secure lang locale theme tz currency".split()
)
_SECRET_FIELDS = frozenset(
    "code sig signature x-amz-signature x-amz-security-token x-amz-credential x-goog-signature key t ticket assertion "
    "client_assertion code_verifier samlresponse samlrequest hmac hdnts policy st otp magic k se_sig "
    "invite invitation confirmation_token reset signature2 sharedkey".split()
)


def find_userinfo(text: str, start: int) -> Iterator[Span]:
    """Find the password between user and host of an address whose `://` is at `start`."""
    found = _ADDRESS.match(text, start + 3)
    if found is None or "@" not in found.group():
        return
    address = found.group()
    authority = re.split(r"[/?#]", address, maxsplit=1)[0]
    at = authority.rfind("@") if "@" in authority else address.find("@")
    if not _HOST_START.match(address, at + 1):
        return
    user, colon, password = address[:at].partition(":")
    first = start + 3 + len(user) + 1
    if colon and len(user) <= 128 and password and password != "x-oauth-basic":  # noqa: S105 - the fixed word of a scheme
        slashed = at >= len(authority)
        if not (slashed and _reads_as_path(password)) and not is_placeholder_password(password):
            yield Span(first, start + 3 + at, "url_password")
    elif at < len(authority) and _is_token_user(user, address[at : at + 60]):
        yield Span(start + 3, start + 3 + len(user), "token")


def _is_token_user(user: str, host: str) -> bool:
    """A long random user name is a token; error trackers put a public key there."""
    return len(user) >= 20 and is_shaped(user, 20) and "sentry" not in host


def _reads_as_path(password: str) -> bool:
    return (
        len(password) > 100 or "?" in password or re.match(r"\d{1,5}(?:/|$)", password) is not None
    )


def is_placeholder_password(value: str) -> bool:
    """Say whether the password part of an address is only a stand-in."""
    if value.startswith(("$", "{", "<", "[", "*", "%(", "%s")) or "${" in value:
        return True
    return value.lower() in (
        "password",
        "pass",
        "passwd",
        "pwd",
        "secret",
        "xxx",
        "xxxx",
        "token",
        "your_password",
        "changeme",
        "...",
        "pw",
    )


def find_oracle(text: str, start: int) -> Iterator[Span]:
    """Find the password in `user/password@host`."""
    found = _ORACLE.match(text, start)
    if found and not is_placeholder_password(found["v"]):
        yield Span(found.start("v"), found.end("v"), "url_password")


def find_query(text: str, start: int) -> Iterator[Span]:
    """Find a secret field that begins after the `?` or `&` at `start`."""
    found = _QUERY.match(text, start + 1)
    if found is None:
        return
    name, value = found["k"].lower(), found["v"]
    if is_placeholder(value):
        return
    if name in _SECRET_FIELDS or name.startswith(("saml", "x-amz-sig", "x-goog-sig")):
        if (
            (len(value) >= 8 and any(c.isdigit() for c in value) and not value.isdigit())
            or len(value) > 24
            or (name == "code" and len(value) >= 10 and is_shaped(value, 10))
        ):
            yield Span(found.start("v"), found.end("v"), "query")
        return
    key = classify_key(name)
    if key is None or value.isdigit():
        return
    random = (len(value) >= 6 and any(c.isdigit() for c in value)) or len(value) > 24
    if len(value) >= 4 and (key.strong or random):
        yield Span(found.start("v"), found.end("v"), key.label)


def find_authorization(text: str, start: int) -> Iterator[Span]:
    """Find the credential of an Authorization header that begins at `start`."""
    found = _AUTHORIZATION.match(text, start)
    if found is None or is_placeholder(found["v"]) or found["v"].startswith(("$", "{", "(")):
        return
    value = found["v"]
    if found["scheme"]:
        if re.fullmatch(r"[a-z]{1,12}[.!?]?", value):
            return
    elif not (any(c.isdigit() for c in value) or len(value) > 24) or "(" in value:
        return
    yield Span(found.start("v"), found.end("v"), "authorization")


def find_bearer(text: str, start: int) -> Iterator[Span]:
    """Find a bearer token outside a header."""
    found = _BEARER.match(text, start)
    if found and any(c.isdigit() for c in found["v"]) and not is_placeholder(found["v"]):
        yield Span(found.start("v"), found.end("v"), "authorization")


def find_basic(text: str, start: int) -> Iterator[Span]:
    """Find Basic credentials outside a header: base64 of `user:password`."""
    found = _BASIC.match(text, start)
    if found and is_basic_credential(found["v"]):
        yield Span(found.start("v"), found.end("v"), "authorization")


def is_basic_credential(value: str) -> bool:
    """Say whether base64 text decodes to `user:password`."""
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4))
        return ":" in raw.decode("utf-8")
    except (binascii.Error, ValueError):
        return False


def find_signature(text: str, start: int) -> Iterator[Span]:
    """Find the signature of a signed request."""
    found = _SIGNATURE.match(text, start)
    if found:
        yield Span(found.start("v"), found.end("v"), "signature")


def find_digest(text: str, start: int) -> Iterator[Span]:
    """Find the response of digest authentication."""
    found = _DIGEST.match(text, start)
    if found:
        yield Span(found.start("v"), found.end("v"), "authorization")


def find_cookies(text: str, start: int) -> Iterator[Span]:
    """Find the values in a Cookie or Set-Cookie line that begins at `start`."""
    found = _COOKIE.match(text, start)
    if found is None:
        return
    # Where another cookie line begins inside this one, its own turn comes.
    another = _COOKIE_HEAD.search(text, *found.span("v"))
    stop = another.start() if another else found.end("v")
    for crumb in _CRUMB.finditer(text, found.start("v"), stop):
        if crumb["k"].lower() in _COOKIE_SETTINGS or is_placeholder(crumb["v"]):
            continue
        if len(crumb["v"]) >= 6 and "(" not in crumb["v"]:
            yield Span(crumb.start("v"), crumb.end("v"), "cookie")
