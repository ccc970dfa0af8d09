"""A scripted model is deterministic and follows from the conversation alone."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pydantic_ai.messages import ModelMessage

from runtime_core import gateway
from runtime_core.clock import monotonic
from runtime_core.errors import ModelNotConfigured, ModelUnavailable, RateLimited, ScriptEnded
from runtime_core.gateway import Answer, ModelCall, StreamStopped, TextDelta
from runtime_core.gateway.messages import dump, load, tool_results, user_request
from runtime_core.values import Usage
from tests.gateway.conftest import ask

FIXER = """
name: code-fixer
chunk_chars: 5
vars: {order: 'order (\\w+)'}
turns:
  - id: look
    text: "I will look at {{input}}."
    calls:
      - {tool: list_files, args: {path: "."}}
      - {tool: lookup, args: {order: "{{order}}", nested: ["{{order}}", "{{unknown}}"]}}
    usage: {input_tokens: 100, output_tokens: 20}
  - id: write
    calls:
      - {tool: write_file, args: {path: a.py}}
    next:
      - {tool: write_file, outcome: denied, turn: rejected}
      - {tool: write_file, contains: "FAILED", turn: still_failing}
      - {turn: commit}
  - {id: rejected, text: "Then not."}
  - id: still_failing
    text: "Again."
    calls: [{tool: write_file, raw_args: '{"path": '}]
    next: [{turn: write}]
  - {id: commit, text: "Committed."}
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a script and give a function that asks it."""
    monkeypatch.setattr(settings, "BASE_DIR", tmp_path)
    monkeypatch.setattr(settings, "INTERLOCK_MODEL", "", raising=False)

    def write(content: str) -> Any:
        (tmp_path / "script.yaml").write_text(content, "utf-8")

        def play(*messages: ModelMessage) -> tuple[str, Answer]:
            stored = tuple(load(dump(message)) for message in messages)
            return ask(ModelCall(None, "script.yaml", "Be brief.", stored))

        return play

    return write


def _results(answer: Answer, content: Any = "ok", outcome: Any = "success") -> ModelMessage:
    return tool_results([(c.call_id, c.tool, content, outcome) for c in answer.calls])


def test_it_plays_turns_in_order_and_fills_in_what_the_user_said(played: Any) -> None:
    play = played(FIXER)
    asked = user_request("order X42 please")

    streamed, first = play(asked)
    _, second = play(asked, first.response, _results(first))

    assert streamed == first.text == "I will look at order X42 please."
    assert [c.tool for c in first.calls] == ["list_files", "lookup"]
    assert first.calls[1].args_text == '{"order": "X42", "nested": ["X42", "{{unknown}}"]}'
    assert first.usage == Usage(100, 20, 0)
    assert (first.model, first.provider, first.finish_reason) == (
        "script:code-fixer",
        "script",
        "tool_call",
    )
    assert second.calls[0].tool == "write_file"
    assert second.usage.input_tokens > 0 and second.usage.cost_microusd == 0


@pytest.mark.parametrize(
    ("content", "outcome", "said"),
    [
        ("no", "denied", "Then not."),
        ({"stdout": "1 FAILED\nhere"}, "success", "Again."),
        ("fine", "success", "Committed."),
    ],
)
def test_it_branches_on_the_results_of_a_turns_calls(
    played: Any, content: Any, outcome: str, said: str
) -> None:
    play = played(FIXER)
    asked = user_request("Go")
    _, look = play(asked)
    history = [asked, look.response, _results(look)]
    _, write = play(*history)

    _, answer = play(*history, write.response, _results(write, content, outcome))

    assert answer.text == said


def test_it_gives_malformed_arguments_in_their_exact_words_and_may_loop(played: Any) -> None:
    play = played(FIXER)
    history: list[ModelMessage] = [user_request("Go")]
    texts = []
    ids = []
    for content in ("ok", "FAILED", "ok", "FAILED", "ok", "fine"):
        _, answer = play(*history)
        texts.append(answer.text or answer.calls[0].args_text)
        ids += [c.call_id for c in answer.calls]
        history += [answer.response, _results(answer, content)]

    assert texts[1:] == [
        '{"path": "a.py"}',
        "Again.",
        '{"path": "a.py"}',
        "Again.",
        '{"path": "a.py"}',
    ]
    assert len(set(ids)) == len(ids), "each call of a conversation has an id of its own"


def test_it_is_deterministic(played: Any) -> None:
    play = played(FIXER)
    asked = user_request("Go")

    first, second = play(asked)[1], play(asked)[1]

    assert first.calls == second.calls
    assert first.response.provider_response_id == second.response.provider_response_id


def test_a_new_user_prompt_starts_at_the_first_turn_again(played: Any) -> None:
    play = played(FIXER)
    asked = user_request("Go")
    _, first = play(asked)

    _, again = play(asked, first.response, _results(first), user_request("Once more"))

    assert again.text == "I will look at Once more."
    assert not {c.call_id for c in again.calls} & {c.call_id for c in first.calls}


def test_it_says_so_when_the_script_ends_early(played: Any) -> None:
    play = played("turns: [{text: Only this., calls: [{tool: a}]}]")
    asked = user_request("Go")
    _, first = play(asked)

    with pytest.raises(ScriptEnded, match="script has no turn after number 1"):
        play(asked, first.response, _results(first))


def test_it_raises_a_planned_error_as_often_as_it_says(played: Any) -> None:
    play = played(
        "turns: [{text: Well., calls: [{tool: a}],"
        " error: {code: model_unavailable, message: Down, times: 2}}]"
    )
    asked = user_request("Go")

    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="Down") as caught:
            play(asked)
        assert caught.value.data["text"] == "Well."
    assert play(asked)[1].calls[0].tool == "a"
    with pytest.raises(ModelUnavailable):
        play(user_request("Another conversation"))


def test_it_raises_a_planned_error_always_without_a_number(played: Any) -> None:
    play = played("turns: [{error: {code: model_rate_limited, retry_after: 7}}]")
    asked = user_request("Go")

    for _ in range(3):
        with pytest.raises(RateLimited) as caught:
            play(asked)
        assert caught.value.data["retry_after"] == 7


def test_it_may_say_nothing(played: Any) -> None:
    _, answer = played("turns: [{}]")(user_request("Go"))

    assert (answer.text, answer.calls, answer.finish_reason) == ("", (), "stop")


def test_it_streams_in_chunks_and_can_be_stopped_between_them(played: Any) -> None:
    played("chunk_ms: 10000\nturns: [{text: abcdefghijklmnopqrstuvwxyz}]")
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    started = monotonic()

    with pytest.raises(StreamStopped):
        list(gateway.stream(ModelCall(None, "script.yaml", "", (user_request("Go"),)), stop))

    assert monotonic() - started < 1


def test_chunks_have_the_size_that_is_asked_for(played: Any) -> None:
    played("chunk_chars: 3\nturns: [{text: abcdefg}]")
    call = ModelCall(None, "script.yaml", "", (user_request("Go"),))

    deltas = [d.text for d in gateway.stream(call, threading.Event()) if isinstance(d, TextDelta)]

    assert deltas == ["abc", "def", "g"]


WRONG = {
    "turns": "turns: []",
    "the file is not a mapping": "- a",
    "valid YAML at line 2": "turns:\n  - {text: [}",
    "the file has an unknown field 'turn'": "turn: [{text: a}]",
    r"turns\[0\] has an unknown field 'txt'": "turns: [{txt: a}]",
    r"turns\[0\].text is not text": "turns: [{text: 3}]",
    r"turns\[0\].calls\[0\].tool is not text": "turns: [{calls: [{args: {}}]}]",
    r"turns\[0\].calls\[0\] has both": "turns: [{calls: [{tool: a, args: {}, raw_args: ''}]}]",
    r"calls\[0\].args is not JSON": "turns: [{calls: [{tool: a, args: {on: 2026-01-01}}]}]",
    r"turns\[0\].error.code is none of": "turns: [{error: {code: nonsense}}]",
    r"turns\[0\].error.times": "turns: [{error: {code: model_error, times: -1}}]",
    r"turns\[0\].usage.input_tokens": "turns: [{usage: {input_tokens: many}}]",
    r"turns\[0\].next\[0\].turn names no turn: 'b'": "turns: [{id: a, next: [{turn: b}]}]",
    r"turns\[0\].next\[0\].turn is missing": "turns: [{next: [{tool: a}]}]",
    r"turns\[0\].next\[0\].outcome": "turns: [{next: [{outcome: maybe, turn: 0}]}]",
    r"turns\[1\].id repeats 'a'": "turns: [{id: a}, {id: a}]",
    "chunk_ms": "chunk_ms: -1\nturns: [{}]",
    "vars.order is not a regular expression": "vars: {order: '('}\nturns: [{}]",
}


@pytest.mark.parametrize(("said", "content"), WRONG.items(), ids=range(len(WRONG)))
def test_it_names_the_file_and_the_field_that_is_wrong(
    played: Any, said: str, content: str
) -> None:
    with pytest.raises(ModelNotConfigured, match=said) as caught:
        played(content)(user_request("Go"))

    assert "script.yaml" in caught.value.message


def test_it_names_a_file_that_is_not_there_without_its_folder(played: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelNotConfigured, match=r"nothing\.yaml cannot be read") as caught:
        ask(ModelCall(None, "nothing.yaml", "", (user_request("Go"),)))

    assert str(tmp_path) not in caught.value.message


def test_a_changed_script_is_read_again(played: Any) -> None:
    played("turns: [{text: Old.}]")(user_request("Go"))

    _, answer = played("turns: [{text: Newer.}]")(user_request("Go"))

    assert answer.text == "Newer."
