"""What a response has used: the provider's figures, else an estimate, so that budgets hold."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelResponse

from runtime_core.values import Usage

_CHARS_A_TOKEN = 4


def usage_of(response: ModelResponse, sent: Iterable[ModelMessage]) -> Usage:
    """Tokens and cost of one response to the messages `sent`, whether it is complete or not."""
    reported = response.usage
    input_tokens, output_tokens = reported.input_tokens or 0, reported.output_tokens or 0
    if not input_tokens and not output_tokens:
        input_tokens, output_tokens = estimated_tokens(sent), estimated_tokens([response])
        return Usage(input_tokens, output_tokens)
    return Usage(input_tokens, output_tokens, _cost_microusd(response))


def estimated_tokens(messages: Iterable[ModelMessage]) -> int:
    """About how many tokens the messages are, by the usual four characters each."""
    return sum(_characters(message) for message in messages) // _CHARS_A_TOKEN


def _characters(message: ModelMessage) -> int:
    return sum(
        len(str(getattr(part, "content", None) or ""))
        + len(str(getattr(part, "args", None) or ""))
        + len(getattr(part, "tool_name", ""))
        for part in message.parts
    )


def _cost_microusd(response: ModelResponse) -> int:
    # The price list comes with the package; a model it does not know costs nothing we could name.
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError, AssertionError):
        return 0
