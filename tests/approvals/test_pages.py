"""The inbox's pages over HTTP: what is shown to whom, and what a form does."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from approvals.models import Decision
from runtime_core import clock
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Membership
from tests.approvals.world import FIXED, World, audited

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
MARKUP = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    '<div hx-post="/approve/1" hx-trigger="load">',
    "{{7*7}}",
    '"><svg/onload=alert(1)>',
]


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(interrupt: Interrupt) -> str:
    return f"/inbox/{interrupt.id}/"


def send(client: Client, interrupt: Interrupt, action: str, **more: str) -> HttpResponse:
    form = {"action": action, "version": str(interrupt.version), "digest": interrupt.digest, **more}
    return client.post(page_of(interrupt), form)


def text_of(response: HttpResponse) -> str:
    return response.content.decode()


def bare(response: HttpResponse) -> str:
    """A page without what differs from one request to the next."""
    return re.sub(r"[0-9a-f-]{36}|[0-9T:.-]{19,}|csrf\S+ \S+", "", text_of(response), flags=re.I)


@pytest.fixture
def approver(world: World) -> Client:
    return client_of(world.approver)


def test_the_list_shows_what_waits_for_the_person(world: World, approver: Client) -> None:
    world.ask("run_command", {"argv": ["pytest", "-q"]})
    own = world.run(by=world.approver)
    world.ask("issue_refund", REFUND, run=own, risk="high")

    mine = text_of(approver.get("/inbox/"))
    every = text_of(approver.get("/inbox/?view=all"))

    assert "pytest -q" in mine
    assert "issue_refund" not in mine
    assert "issue_refund" in every
    assert "<title>(1)" in mine


def test_who_decides_nowhere_sees_all_that_is_open(world: World) -> None:
    world.ask()

    assert "write_file" in text_of(client_of(world.viewer).get("/inbox/"))


def test_filters_are_the_address(world: World, approver: Client) -> None:
    world.ask("run_command", {"argv": ["ls"]}, risk="critical")
    world.ask("write_file", risk="medium")

    page = text_of(approver.get("/inbox/?view=mine&risk=critical&agent=code-fixer"))

    assert "run_command" in page
    assert "write_file" not in page
    assert 'value="critical" selected' in page


def test_filters_that_nothing_can_have_find_nothing(approver: Client) -> None:
    assert approver.get("/inbox/?view=x&risk=x&agent=%00").status_code == 200


def test_nothing_there_is_not_the_same_as_nothing_found(world: World, approver: Client) -> None:
    assert "Nothing needs you" in text_of(approver.get("/inbox/"))

    world.ask()

    assert "No results" in text_of(approver.get("/inbox/?risk=critical"))
    assert "No results" not in text_of(approver.get("/inbox/?risk=nonsense"))


def test_the_fragment_is_the_list_alone(world: World, approver: Client) -> None:
    world.ask()

    fragment = text_of(approver.get("/inbox/?fragment=list"))

    assert fragment.strip().startswith('<section id="inbox-list"')
    assert "<html" not in fragment


def test_a_signed_out_person_is_sent_to_sign_in(world: World) -> None:
    for path in ("/inbox/", page_of(world.ask())):
        response = Client().get(path)
        assert (response.status_code, response["Location"]) == (302, f"/login/?next={path}")


def test_a_get_never_decides(world: World, approver: Client) -> None:
    interrupt = world.ask()

    approver.get(
        page_of(interrupt), {"action": "approve", "version": 1, "digest": interrupt.digest}
    )

    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_a_form_without_its_token_is_refused(world: World) -> None:
    interrupt = world.ask()
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.approver)

    assert send(client, interrupt, "approve").status_code == 403
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_an_approval_leads_to_its_receipt(world: World, approver: Client) -> None:
    interrupt = world.ask()

    response = send(approver, interrupt, "approve")

    assert (response.status_code, response["Location"]) == (302, page_of(interrupt))
    receipt = text_of(approver.get(page_of(interrupt)))
    assert 'class="receipt"' in receipt
    assert "by <strong>approver</strong>" in receipt
    assert 'name="action"' not in receipt


def test_with_htmx_the_receipt_comes_at_once(world: World, approver: Client) -> None:
    interrupt = world.ask()
    form = {"action": "approve", "version": "1", "digest": interrupt.digest}

    response = approver.post(page_of(interrupt), form, headers={"HX-Request": "true"})

    assert response.status_code == 200
    assert text_of(response).strip().startswith('<article id="detail"')
    assert 'class="receipt"' in text_of(response)


def test_the_form_is_made_from_the_schema_and_keeps_types(world: World, approver: Client) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")

    page = text_of(approver.get(page_of(interrupt)))
    response = send(approver, interrupt, "edit", **{"arg.amount": "5.00"})

    assert 'name="arg.amount" value="20.00"' in page
    assert response.status_code == 302
    call = Interrupt.objects.get(id=interrupt.id).tool_call
    assert call.args_text == ('{"amount":"5.00","order_id":"A-1001","reason":"Broken on arrival."}')


def test_the_raw_json_alternative_is_read_strictly(world: World, approver: Client) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")

    twice = send(approver, interrupt, "edit", raw_args='{"amount": 1, "amount": 2}')
    right = send(
        approver,
        interrupt,
        "edit",
        raw_args='{"order_id": "A-1001", "amount": 5.5, "reason": "Part."}',
    )

    assert twice.status_code == 422
    assert "given twice" in text_of(twice)
    assert right.status_code == 302


@pytest.mark.parametrize(
    ("action", "more", "told"),
    [
        ("", {}, "Choose what to decide."),
        ("APPROVE", {}, "Choose what to decide."),
        ("reject", {}, "Say why."),
        ("reject", {"reason": "   "}, "Say why."),
        ("respond", {}, "Write an answer."),
        ("edit", {}, "Nothing was changed."),
        ("edit", {"arg.amount": "-1"}, "amount"),
        ("approve", {"version": "one"}, "which version"),
        ("approve", {"version": ""}, "which version"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_is_sent(
    world: World, approver: Client, action: str, more: dict[str, str], told: str
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")

    response = send(approver, interrupt, action, **more)

    assert response.status_code == 422
    assert told in text_of(response)
    assert "Nothing was sent." in text_of(response)
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_at_critical_risk_the_tool_is_named_by_hand(world: World, approver: Client) -> None:
    interrupt = world.ask("run_command", {"argv": ["ls"]}, risk="critical")

    refused = [
        send(approver, interrupt, "approve"),
        send(approver, interrupt, "approve", confirm="RUN_COMMAND"),
        send(approver, interrupt, "edit", confirm="no", **{"arg.argv": '["pwd"]'}),
    ]
    accepted = send(approver, interrupt, "approve", confirm="run_command")

    assert [response.status_code for response in refused] == [422, 422, 422]
    assert accepted.status_code == 302


def test_a_question_is_answered_from_its_choices(world: World, approver: Client) -> None:
    args = {"question": "Which region?", "choices": ["eu", "us"]}
    interrupt = world.ask("ask_human", args, kind="question", risk="low")

    page = text_of(approver.get(page_of(interrupt)))
    response = send(approver, interrupt, "respond", response="eu")

    assert 'type="radio" name="response" value="eu"' in page
    assert 'data-key="a"' not in page
    assert response.status_code == 302
    assert Interrupt.objects.get(id=interrupt.id).status == "answered"


def test_a_double_clicked_approve_never_decides_the_next_request(
    world: World, approver: Client
) -> None:
    run = world.run()
    first, second = world.ask(run=run), world.ask(run=run)

    answers = [send(approver, first, "approve").status_code for _ in range(2)]
    carried_over = approver.post(
        page_of(second), {"action": "approve", "version": "1", "digest": first.digest[::-1]}
    )

    assert answers == [302, 302]
    assert carried_over.status_code == 409
    assert Interrupt.objects.get(id=second.id).status == "open"
    assert Decision.objects.count() == 1


def test_a_changed_request_keeps_the_edits_and_shows_both_sides(
    world: World, approver: Client
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    Interrupt.objects.filter(id=interrupt.id).update(version=2)

    response = send(approver, interrupt, "edit", **{"arg.amount": "5.00"})
    page = text_of(response)

    assert response.status_code == 409
    assert "changed while you were reading (version 1 → 2)" in page
    assert "<del>20.00</del>" in page
    assert "<ins>5.00</ins>" in page
    assert 'name="arg.amount" value="5.00"' in page
    assert "Approve my edits on version 2" in page
    # The kept edits are bound to what is there now.
    assert set(re.findall(r'name="version" value="(\d+)"', page)) == {"2"}
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_kept_edits_can_be_applied_on_the_new_version(world: World, approver: Client) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    Interrupt.objects.filter(id=interrupt.id).update(version=2)
    send(approver, interrupt, "edit", **{"arg.amount": "5.00"})

    response = send(approver, interrupt, "edit", **{"arg.amount": "5.00", "version": "2"})

    assert response.status_code == 302
    assert Decision.objects.get().version == 3  # the edit is the next version


@pytest.mark.parametrize(
    ("action", "more", "kept"),
    [
        ("edit", {"arg.amount": "5.00"}, "5.00"),
        ("respond", {"response": "Not this week."}, "Not this week."),
        ("reject", {"reason": "Too much."}, "Too much."),
    ],
)
def test_who_comes_second_sees_who_decided_and_keeps_their_words(
    world: World, approver: Client, action: str, more: dict[str, str], kept: str
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    send(client_of(world.approver2), interrupt, "approve")

    response = send(approver, interrupt, action, **more)
    page = text_of(response)

    assert response.status_code == 409
    assert "approver2 decided this" in page
    assert "Nothing of yours was sent" in page
    assert kept in page
    assert 'name="action"' not in page


def test_an_ended_run_and_a_passed_time_are_told_apart(world: World, approver: Client) -> None:
    withdrawn, late = world.ask(), world.ask(expires_in=dt.timedelta(seconds=-1))
    Interrupt.objects.filter(id=withdrawn.id).update(status="withdrawn", decided_at=clock.now())

    gone = send(approver, withdrawn, "approve")
    passed = send(approver, late, "reject", reason="Too much.")

    assert (gone.status_code, passed.status_code) == (409, 410)
    assert "The run ended" in text_of(gone)
    assert "The time to decide has passed" in text_of(passed)
    assert "Too much." in text_of(passed)


def test_a_right_lost_between_page_and_click_is_told(world: World, approver: Client) -> None:
    interrupt = world.ask()
    assert approver.get(page_of(interrupt)).status_code == 200
    Membership.objects.filter(user=world.approver).update(role="viewer")

    response = send(approver, interrupt, "approve")

    assert response.status_code == 403
    assert "Ask a project admin for the approver role." in text_of(response)
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_a_right_lost_meanwhile_leaves_what_was_written(world: World, approver: Client) -> None:
    interrupt = world.ask("issue_refund", {"order_id": "A-1", "amount": "12.50"}, risk="high")
    Membership.objects.filter(user=world.approver).update(role="viewer")
    mine = json.dumps({"order_id": "A-1", "amount": "9.99<i>"})

    edited = send(approver, interrupt, "edit", raw_args=mine, reason="Half of it")
    rejected = send(approver, interrupt, "reject", reason="Not without the photo")

    assert (edited.status_code, rejected.status_code) == (403, 403)
    for kept in ("What you wrote", "9.99&lt;i&gt;", "Half of it"):
        assert kept in edited.content.decode()
    assert "Not without the photo" in text_of(rejected)


def test_who_may_not_decide_sees_redacted_arguments_and_whom_to_ask(world: World) -> None:
    interrupt = world.ask(
        args={"path": "a", "content": "hunter2"},
        shown_args={"path": "a", "content": "[REDACTED:secret]"},
    )

    page = text_of(client_of(world.viewer).get(page_of(interrupt)))

    assert "hunter2" not in page
    assert "data-redacted" in page
    assert "Who can: approver, approver2." in page
    assert 'name="action"' not in page
    assert not audited("interrupt.viewed")


def test_seeing_exact_arguments_is_kept_in_the_audit(world: World, approver: Client) -> None:
    interrupt = world.ask()

    for _ in range(2):
        approver.get(page_of(interrupt))

    assert [entry["actor"] for entry in audited("interrupt.viewed")] == ["approver"]


def test_a4_a_stranger_sees_nothing_on_any_page(world: World) -> None:
    interrupt = world.ask(args={"path": "a", "content": "canary-9f2c"})
    stranger = client_of(world.stranger)

    listed = [
        stranger.get("/inbox/"),
        stranger.get("/inbox/?view=all"),
        stranger.get("/inbox/?view=decided"),
        stranger.get("/inbox/?fragment=list&view=all"),
    ]
    closed = [
        stranger.get(page_of(interrupt)),
        stranger.get(page_of(interrupt), headers={"HX-Request": "true"}),
        send(stranger, interrupt, "approve"),
    ]

    assert {response.status_code for response in closed} == {404}
    for response in listed + closed:
        assert "canary-9f2c" not in text_of(response)
        assert "write_file" not in text_of(response)
    assert bare(stranger.get(f"/inbox/{new_id()}/")) == bare(closed[0])
    assert Interrupt.objects.get(id=interrupt.id).status == "open"
    assert [entry["actor"] for entry in audited("decision.denied")] == ["stranger"]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("a" * 200 + " " * 400 + " ; rm -rf /w", "401 blanks"),
        ("rm -rf /w/\u202e gnp.tpircs", "U+202E"),
        ("ls\u200b -la", "U+200B"),
        ("ok\r\x1b[2K safe", "U+001B"),
        ("a\u2028b", "U+2028"),
        ("x\U000e0100y", "U+E0100"),
        ("tag\U000e0041", "U+E0041"),
    ],
)
def test_a11_every_character_of_the_arguments_can_be_seen(
    world: World, approver: Client, text: str, mark: str
) -> None:
    interrupt = world.ask("run_command", {"argv": ["sh", "-c", text]})

    for page in (text_of(approver.get("/inbox/")), text_of(approver.get(page_of(interrupt)))):
        assert mark in page
        shown = re.sub(r"<textarea.*?</textarea>", "", page, flags=re.DOTALL)
        for char in text:
            hidden = char not in "\n\t" and not char.isprintable() and char != " "
            if hidden or ord(char) > 0xE0000:
                assert char not in shown
        for part in re.findall(r"[a-z/.;-]{2,}", text):
            assert part in shown


def test_a11_what_is_approved_runs_to_the_byte(world: World, approver: Client) -> None:
    argv = ["sh", "-c", "ok\r\x1b[2K" + " " * 400 + "\u202e\u200b;rm"]
    interrupt = world.ask("run_command", {"argv": argv})
    before = interrupt.tool_call.args_text

    send(approver, interrupt, "approve")

    call = Interrupt.objects.get(id=interrupt.id).tool_call
    assert (call.status, call.args_text) == ("approved", before)


def test_a11_big_values_are_folded_but_whole(world: World, approver: Client) -> None:
    content = "\n".join(f"line {n}" for n in range(3_000)) + "\nTHE-END"
    interrupt = world.ask(args={"path": "calc.py", "content": content})

    page = text_of(approver.get(page_of(interrupt)))
    listed = text_of(approver.get("/inbox/"))

    assert "in 3001 lines" in page
    assert "line 0\n" in page
    assert "THE-END" in page
    assert "characters in 3,001 lines)" in listed


@pytest.mark.parametrize("markup", MARKUP)
def test_h5_markup_from_models_and_people_stays_text(
    world: World, approver: Client, markup: str
) -> None:
    run = world.run(title=markup)
    asked = world.ask("run_command", {"argv": [markup], markup: markup}, run=run, reason=markup)
    odd = world.ask(markup[:100], {"a": markup}, run=run)
    question = world.ask(
        "ask_human", {"question": markup, "choices": [markup]}, run=run, kind="question"
    )
    pages = [
        approver.get("/inbox/?view=all"),
        *(approver.get(page_of(one)) for one in (asked, odd, question)),
        send(approver, asked, "edit", raw_args=markup),
        send(approver, odd, "reject", reason=markup),
        approver.get(page_of(odd)),
        send(client_of(world.approver2), odd, "reject", reason=markup),
        approver.get("/inbox/?view=decided"),
    ]

    for response in pages:
        page = text_of(response)
        for live in ("<img src=x", "<script>alert", "<svg/onload", 'hx-post="/approve', ">49<"):
            assert live not in page
        assert 'href="javascript:' not in page
        assert "script-src 'self'" in response["Content-Security-Policy"]


def test_no_page_of_the_inbox_needs_inline_code(world: World, approver: Client) -> None:
    interrupt = world.ask("run_command", {"argv": ["ls"]}, risk="critical")

    for path in ("/inbox/", page_of(interrupt)):
        page = text_of(approver.get(path))
        assert not re.search(r"<[^>]+\sstyle=|<style|\son\w+=", page)
        assert not re.search(r"<script(?![^>]*\ssrc=)", page)


def test_a_change_to_a_file_is_shown_as_a_diff_of_it(
    world: World, approver: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "calc.py").write_text(FIXED.replace("a + b", "a - b"))
    monkeypatch.setattr("runtime_core.tools.workspace.path_of", lambda run_id: tmp_path)
    interrupt = world.ask()

    page = text_of(approver.get(page_of(interrupt)))

    assert "<del>    return a - b</del>" in page
    assert "<ins>    return a + b</ins>" in page


def test_exact_arguments_beside_a_wrong_form_or_a_conflict_are_kept_as_seen(
    world: World, approver: Client
) -> None:
    for form in ({"action": "x"}, {"action": "approve", "version": "1", "digest": "0"}):
        interrupt = world.ask(args={"path": "a", "content": "hunter2"})

        page = text_of(approver.post(page_of(interrupt), form))

        assert "hunter2" in page
        assert audited("interrupt.viewed")[-1]["object"] == str(interrupt.id)
