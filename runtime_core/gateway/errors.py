"""Names what went wrong: an error of pydantic-ai or below becomes one of ours, without a secret."""

from __future__ import annotations

import logging
import math
import os
import re
from email.utils import parsedate_to_datetime

from pydantic_ai import exceptions as px

from runtime_core.clock import now
from runtime_core.errors import (
    ContextTooLong,
    InterlockError,
    ModelError,
    ModelNotConfigured,
    ModelProtocolError,
    ModelRefused,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    SchemaUnsupported,
)
from runtime_core.limits import limits

logger = logging.getLogger(__name__)

_MESSAGE_CHARS = 500
_TOO_LONG = re.compile(
    r"context.{0,10}(length|window)|(prompt|input|request|message).{0,20}too (long|large)"
    r"|too many (input )?tokens|reduce the length",
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    r"invalid schema|schema.{0,60}(not supported|unsupported|not permitted|unknown|invalid)"
    r"|(not supported|unsupported|unknown|invalid).{0,60}schema",
    re.IGNORECASE,
)
_SCHEMA_STATUS = {400, 422}
_TOO_LONG_STATUS = {400, 413, 422, 429}
_AGAIN_STATUS = {408, 409, 425}
_REJECTED_TYPES = {
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "billing_error",
}
_KEY_NAME = re.compile(r"_(API_KEY|TOKEN|SECRET)$")
_KEY_SHAPE = re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_*.-]{6,}|(?i:bearer) [A-Za-z0-9._~+/=-]{6,}")


def named(error: Exception, *, heard: bool) -> InterlockError:
    """The error of ours that `error` is; `heard` says that the response had begun."""
    match error:
        case InterlockError():
            return error
        case px.ContentFilterError():
            return ModelRefused(clean(error.message))
        case px.ModelAPIError():
            return _api_error(error, heard)
        case px.UnexpectedModelBehavior():
            return ModelProtocolError(f"The model's answer is not usable: {clean(error.message)}")
        case px.UserError():
            return ModelNotConfigured(clean(error.message))
        case ImportError():
            return ModelNotConfigured(f"The model's provider is not installed: {clean(str(error))}")
    logger.error(
        "unexpected %s while reading a model's answer", type(error).__name__, exc_info=error
    )
    return ModelProtocolError(
        f"The model's answer is not in its provider's format ({type(error).__name__})."
    )


def retry_after_seconds(header: str | None, milliseconds: str | None = None) -> float | None:
    """Seconds to wait by `Retry-After`, which is seconds or an HTTP date; None if it says none.

    Never below 0, nor above the longest life of a run: waiting longer helps nobody.
    """
    try:
        if milliseconds is not None:
            return _bounded(float(milliseconds) / 1000)
        if header is None:
            return None
        return _bounded(float(header))
    except ValueError:
        return _seconds_until(header or "")


def clean(text: str) -> str:
    """`text` short, on one line and without anything that is or looks like an API key."""
    for name, value in os.environ.items():
        if len(value) >= 6 and _KEY_NAME.search(name):
            text = text.replace(value, "[secret]")
    text = _KEY_SHAPE.sub("[secret]", " ".join(text.split()))
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + "…"


def _api_error(error: px.ModelAPIError, heard: bool) -> ModelError:
    status = getattr(error, "status_code", None)
    said = _said(error)
    data = {
        key: value
        for key, value in {
            "status": status,
            "provider_code": error.provider_error_code,
            "retry_after": _retry_after(error),
        }.items()
        if value is not None
    }
    kind, sentence = _kind(error, status, said, heard)
    return kind(f"{sentence}: {said}" if said else sentence, **data)


def _kind(
    error: px.ModelAPIError, status: int | None, said: str, heard: bool
) -> tuple[type[ModelError], str]:
    if _says_too_long(error, status, said):
        return ContextTooLong, "The conversation no longer fits the model"
    if isinstance(error, px.ModelConnectionError | px.ModelRequestTimeout):
        return _connection_kind(error, heard)
    if status in _SCHEMA_STATUS and _SCHEMA.search(said):
        return SchemaUnsupported, f"The model's provider does not know a tool's schema ({status})"
    where = status or "in its stream"
    for category, kind, sentence in _CATEGORIES:
        if isinstance(error, category):
            return kind, f"{sentence} ({where})"
    if status in _AGAIN_STATUS:
        return ModelUnavailable, f"The model's provider could not serve the request ({where})"
    if (status and 400 <= status < 500) or error.provider_error_type in _REJECTED_TYPES:
        return ModelRejected, f"The model's provider refused the request ({where})"
    return ModelProtocolError, "The model's stream failed"


_OUT_OF_QUOTA = "The quota at the model's provider is used up; raise it there, then retry the run"
_BAD_KEY = (
    "The model's provider refused the API key; give the workers a valid one, then retry the run"
)
_CATEGORIES: tuple[tuple[type[px.ModelAPIError], type[ModelError], str], ...] = (
    (
        px.ModelQuotaExceededError,
        ModelRejected,
        _OUT_OF_QUOTA,
    ),
    (px.ModelRateLimitError, RateLimited, "The model's provider asks to slow down"),
    (px.ModelUnavailableError, ModelUnavailable, "The model's provider is not available"),
    (px.ModelServerError, ModelUnavailable, "The model's provider failed"),
    (
        px.ModelAuthenticationError,
        ModelRejected,
        _BAD_KEY,
    ),
    (
        px.ModelNotFoundError,
        ModelRejected,
        "The model's provider does not know this model or address; "
        "correct the agent's `model` or the base URL, then start a new run",
    ),
    (px.ModelRequestRejectedError, ModelRejected, "The model's provider refused the request"),
)


def _says_too_long(error: px.ModelAPIError, status: int | None, said: str) -> bool:
    if isinstance(error, px.ModelContextWindowExceededError) or status == 413:
        return True
    return (status is None or status in _TOO_LONG_STATUS) and bool(_TOO_LONG.search(said))


def _connection_kind(error: px.ModelAPIError, heard: bool) -> tuple[type[ModelError], str]:
    if isinstance(error, px.ModelTimeoutError):
        phase = error.phase or "connect"
        return ModelTimeout, f"The model's provider could not be reached in time ({phase})"
    if isinstance(error, px.ModelRequestTimeout):
        return ModelTimeout, "The model did not answer in time"
    if heard:
        return ModelProtocolError, "The model's stream broke off"
    return ModelUnavailable, "The model's provider cannot be reached; is its base URL right?"


def _said(error: px.ModelAPIError) -> str:
    if isinstance(error, px.ModelConnectionError | px.ModelRequestTimeout):
        return ""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if isinstance(body, dict):
        for key in ("message", "detail", "error"):
            if isinstance(text := body.get(key), str) and text:
                return clean(text)
        return ""
    if isinstance(error, px.ModelHTTPError):
        return clean(body) if isinstance(body, str) else ""
    return clean(error.message)


def _retry_after(error: px.ModelAPIError) -> float | None:
    headers = getattr(error, "headers", None)
    if headers is None:
        return None if error.retry_after is None else _bounded(error.retry_after)
    return retry_after_seconds(headers.get("retry-after"), headers.get("retry-after-ms"))


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=now().tzinfo)
        return _bounded((moment - now()).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _bounded(seconds: float) -> float | None:
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), float(limits().deadline_seconds))
