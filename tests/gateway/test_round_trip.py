"""A whole exchange with a provider over HTTP: text, a call, its result, and the answer to it."""

from __future__ import annotations

import pytest
from django.conf import settings

from runtime_core.errors import ModelNotConfigured
from runtime_core.gateway.messages import tool_results, user_request
from runtime_core.values import ProposedCall, Usage
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, calls, text


def test_it_streams_text_and_gives_the_whole_answer(provider: Provider) -> None:
    provider.then(text("Grüße aus dem Gateway 🚀"))

    streamed, answer = ask(call())

    assert streamed == answer.text == "Grüße aus dem Gateway 🚀"
    assert answer.finish_reason == "stop"
    assert answer.calls == ()
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 20)
    assert answer.usage.cost_microusd > 0
    assert (answer.model, answer.provider) == ("gpt-5-mini", "openai")
    assert answer.first_token_seconds is not None and answer.first_token_seconds < 5


def test_it_sends_instructions_tools_and_the_results_of_calls(provider: Provider) -> None:
    provider.then(calls(("c1", "read", '{"path": "a.py"}'), content="Reading."), text("Done."))
    asked = user_request("What is in a.py?")

    _, first = ask(call(asked))
    results = tool_results([("c1", "read", {"text": "x = 1"}, "success")])
    _, second = ask(call(asked, first.response, results))

    assert first.calls == (ProposedCall("c1", "read", '{"path": "a.py"}'),)
    assert first.finish_reason == "tool_call"
    assert second.text == "Done."
    sent = provider.requests[1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[0]["content"] == "Be brief."
    assert sent[3]["content"] == '{"text":"x = 1"}'
    assert provider.requests[0]["tools"][0]["function"]["name"] == "read"
    assert provider.refused == []


@pytest.mark.parametrize("spec", ["openai:gpt-5-mini", "openai-chat:gpt-5-mini"])
def test_it_takes_the_model_from_the_settings_before_a_script(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    provider.then(text("From the model."))
    monkeypatch.setattr(settings, "INTERLOCK_MODEL", spec, raising=False)

    _, answer = ask(call(model=None, script="no/such/script.yaml"))

    assert answer.text == "From the model."


def test_it_says_what_to_set_when_no_model_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "INTERLOCK_MODEL", "", raising=False)

    with pytest.raises(ModelNotConfigured, match="INTERLOCK_MODEL"):
        ask(call(model=None))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gpt-5-mini", "Unknown model"),
        ("nobody:gpt-5-mini", "no model provider 'nobody'"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "not installed"),
    ],
)
def test_it_says_what_is_wrong_with_the_models_name(
    monkeypatch: pytest.MonkeyPatch, spec: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(ModelNotConfigured, match=said):
        ask(call(model=spec))


def test_it_estimates_the_usage_where_the_provider_says_none(provider: Provider) -> None:
    reply = text("x" * 400)
    provider.then(reply.but(frames=tuple(f for f in reply.frames if f == "[DONE]" or f["choices"])))

    _, answer = ask(call(user_request("y" * 800)))

    assert answer.usage == Usage(200, 100)


def test_an_empty_answer_is_an_answer_without_text_or_calls(provider: Provider) -> None:
    provider.then(text(""))

    _, answer = ask(call())

    assert (answer.text, answer.calls, answer.finish_reason) == ("", (), "stop")


def test_call_ids_that_a_server_uses_again_are_made_new(provider: Provider) -> None:
    provider.then(calls(("call_0", "read", "{}")))
    asked = user_request("Go")

    _, first = ask(call(asked))
    results = tool_results([("call_0", "read", "x", "success")])
    _, second = ask(call(asked, first.response, results))

    assert [first.calls[0].call_id, second.calls[0].call_id] == ["call_0", "call_0-2"]
