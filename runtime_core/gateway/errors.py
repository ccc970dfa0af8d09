"""Names what went wrong: an error of pydantic-ai or below becomes one of ours, in words that hold no secret."""

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
)
from runtime_core.limits import limits

logger = logging.getLogger(__name__)

_MESSAGE_CHARS = 500
_TOO_LONG = re.compile(
    r"context.{0,10}(length|window)|(prompt|input|request|message).{0,20}too (long|large)|too many (input )?tokens"
    r"|reduce the length",
    re.IGNORECASE,
)
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
            return ModelRefused(_clean(error.message))
        case px.ModelAPIError():
            return _api_error(error, heard)
        case px.UnexpectedModelBehavior():
            return ModelProtocolError(f"The model's answer is not usable: {_clean(error.message)}")
        case px.UserError():
            return ModelNotConfigured(_clean(error.message))
        case ImportError():
            return ModelNotConfigured(
                f"The model's provider is not installed: {_clean(str(error))}"
            )
    logger.error(
        "unexpected %s while reading a model's answer", type(error).__name__, exc_info=error
    )
    return ModelProtocolError(
        f"The model's answer is not in its provider's format ({type(error).__name__})."
    )


def retry_after_seconds(header: str | None, milliseconds: str | None = None) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or an HTTP date), between 0 and a run's longest life; None if it says none."""
    try:
        if milliseconds is not None:
            return _bounded(float(milliseconds) / 1000)
        if header is None:
            return None
        return _bounded(float(header))
    except ValueError:
        return _seconds_until(header or "")


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
    return kind(f"{sentence} {said}".strip(), **data)


def _kind(
    error: px.ModelAPIError, status: int | None, said: str, heard: bool
) -> tuple[type[ModelError], str]:
    too_long = (
        status == 413 or (status in _TOO_LONG_STATUS or status is None) and _TOO_LONG.search(said)
    )
    if isinstance(error, px.ModelContextWindowExceededError) or too_long:
        return ContextTooLong, "The conversation no longer fits the model:"
    match error:
        case px.ModelQuotaExceededError():
            return ModelRejected, "The quota or credit at the model's provider is used up:"
        case px.ModelRateLimitError():
            return RateLimited, "The model's provider asks to slow down:"
        case px.ModelRequestTimeout():
            return ModelTimeout, "The model did not answer in time."
        case px.ModelTimeoutError():
            return (
                ModelTimeout,
                f"The model's provider could not be reached in time ({error.phase or 'connect'}).",
            )
        case px.ModelConnectionError() if heard:
            return ModelProtocolError, "The model's stream broke off."
        case px.ModelConnectionError():
            return (
                ModelUnavailable,
                "The model's provider cannot be reached; is its base URL right?",
            )
        case px.ModelUnavailableError() | px.ModelServerError():
            return ModelUnavailable, f"The model's provider failed ({status or 'in its stream'}):"
        case px.ModelAuthenticationError():
            return ModelRejected, "The model's provider refused the API key or its rights:"
        case px.ModelNotFoundError():
            return ModelRejected, "The model's provider does not know this model or address:"
        case px.ModelRequestRejectedError():
            return ModelRejected, "The model's provider refused the request:"
    if status in _AGAIN_STATUS:
        return ModelUnavailable, f"The model's provider could not serve the request ({status}):"
    if status is not None and 400 <= status < 500 or error.provider_error_type in _REJECTED_TYPES:
        return (
            ModelRejected,
            f"The model's provider refused the request ({status or 'in its stream'}):",
        )
    return ModelProtocolError, "The model's stream failed:"


def _said(error: px.ModelAPIError) -> str:
    if isinstance(error, px.ModelConnectionError | px.ModelRequestTimeout):
        return ""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if isinstance(body, dict):
        for key in ("message", "detail", "error"):
            if isinstance(text := body.get(key), str) and text:
                return _clean(text)
        return ""
    if isinstance(error, px.ModelHTTPError):
        return _clean(body) if isinstance(body, str) else ""
    return _clean(error.message)


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


def _clean(text: str) -> str:
    """`text` short, on one line and without anything that is or looks like an API key."""
    for name, value in os.environ.items():
        if len(value) >= 6 and _KEY_NAME.search(name):
            text = text.replace(value, "[secret]")
    text = _KEY_SHAPE.sub("[secret]", " ".join(text.split()))
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + "…"
