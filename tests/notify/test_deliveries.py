"""From what happens to a request to what people and systems are told of it."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client

from approvals.deciding.commands import Opinion, decide
from approvals.notify import send
from approvals.notify.errors import Undeliverable
from approvals.notify.fanout import fan_out
from approvals.notify.models import Delivery, Endpoint, Notice, QuietTime
from approvals.notify.post import checked, is_public, resolve
from approvals.notify.preferences import preferences_of, save
from runtime_core import clock, ports
from runtime_core.models import Interrupt, Membership
from runtime_core.values import SYSTEM, Actor, Audit
from tests.approvals.world import World, audited
from tests.notify.receiver import Receiver

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
KEY = "ilw_key-of-the-test"


def tell(interrupt: Interrupt, action: str = "interrupt.opened", **data: Any) -> None:
    """What the runtime does in its own transaction when it opens a request."""
    project, run = interrupt.project_id, interrupt.run_id
    entry = Audit(action, SYSTEM, "interrupt", str(interrupt.id), project, run, data)
    ports.audit().record([entry])


def tick() -> int:
    fan_out()
    return send.send_due()


def come_due() -> None:
    """Let the time until the next attempt pass."""
    Delivery.objects.filter(status__in=["pending", "sending"]).update(
        due_at=clock.now() - dt.timedelta(hours=1),
        claimed_until=clock.now() - dt.timedelta(hours=1),
    )


def endpoint(world: World, url: str, channel: str = "webhook", **more: Any) -> Endpoint:
    sealed = {"url": url, "secret": KEY, "host": "127.0.0.1"}
    return Endpoint.objects.create(
        project=world.project, name=f"hook {channel}", channel=channel, **sealed, **more
    )


def give_mail(*people: Any) -> None:
    for person in people:
        person.email = f"{person.username}@example.org"
        person.save()


def test_those_who_may_decide_are_told_and_nothing_says_what_is_asked(world: World) -> None:
    give_mail(world.approver, world.approver2, world.operator, world.stranger)
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    tell(interrupt)

    tick()

    in_app = Delivery.objects.filter(channel="in_app").values_list("person__username", flat=True)
    assert sorted(in_app) == ["approver", "approver2"]
    assert sorted(one.to[0] for one in mail.outbox) == [
        "approver2@example.org", "approver@example.org",
    ]  # fmt: skip
    text = f"{mail.outbox[0].subject}\n{mail.outbox[0].body}"
    for part in (
        "issue_refund",
        "high",
        str(interrupt.run_id),
        "Expires",
        f"/inbox/{interrupt.id}/",
    ):
        assert part in text
    for value in (*REFUND.values(), "Fix the failing test"):
        assert value not in text
    assert tick() == 0


def test_a_notice_exists_only_if_what_it_tells_of_does(world: World) -> None:
    interrupt = world.ask()

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        tell(interrupt)
        raise ZeroDivisionError

    assert not Notice.objects.exists()


def test_who_started_the_run_learns_of_the_decision(world: World) -> None:
    interrupt = world.ask()
    opinion = Opinion("approve", interrupt.version, interrupt.digest)

    decide(Actor(world.approver.pk, "approver"), interrupt.id, opinion)
    tick()

    (told,) = Delivery.objects.all()
    assert (told.person, told.channel, told.notice.kind) == (world.operator, "in_app", "decided")
    client = Client()
    client.force_login(world.operator)
    assert "was approved by approver" in client.get("/notifications/").content.decode()


def test_what_is_decided_already_is_not_mailed_any_more(world: World) -> None:
    give_mail(world.approver)
    interrupt = world.ask(risk="high")
    tell(interrupt)
    fan_out()
    Interrupt.objects.filter(id=interrupt.id).update(status="withdrawn", decided_at=clock.now())

    send.send_due()

    assert mail.outbox == []
    assert Delivery.objects.get(channel="email").status == "dropped"


def test_a_webhook_is_signed_and_carries_no_argument(world: World, receiver: Receiver) -> None:
    endpoint(world, f"{receiver.url}/hook?team=1")
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    tell(interrupt)

    tick()

    (posted,) = receiver.posted
    assert posted.path == "/hook?team=1"
    body = json.loads(posted.body)
    delivery = Delivery.objects.get(channel="webhook")
    assert (body["id"], body["type"]) == (str(delivery.id), "interrupt.opened")
    assert posted.headers["Interlock-Event-Id"] == str(delivery.id)
    assert body["data"]["tool"] == "issue_refund"
    assert body["data"]["url"].endswith(f"/inbox/{interrupt.id}/")
    assert not any(value in posted.body.decode() for value in REFUND.values())
    stamp, signature = posted.headers["Interlock-Signature"].split(",")
    signed = stamp.removeprefix("t=").encode() + b"." + posted.body
    expected = hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()
    assert signature == f"v1={expected}"
    assert delivery.status == "sent"


def test_failures_are_tried_again_with_the_same_id_until_it_is_given_up(
    world: World, receiver: Receiver
) -> None:
    hook = endpoint(world, receiver.url)
    # A redirect is not followed: it would lead past every check of the address.
    receiver.answers = [(500, {}), (302, {"Location": f"{receiver.url}/elsewhere"})] + [
        (429, {})
    ] * (send.MAX_ATTEMPTS - 2)
    tell(world.ask())

    for attempt in range(1, send.MAX_ATTEMPTS + 1):
        tick()
        delivery = Delivery.objects.get(channel="webhook")
        assert (delivery.attempts, len(receiver.posted)) == (attempt, attempt)
        assert tick() == 0, "it waits before the next attempt"
        come_due()

    assert delivery.status == "dead"
    assert "429" in delivery.last_error
    assert {one.path for one in receiver.posted} == {"/"}
    assert len({one.headers["Interlock-Event-Id"] for one in receiver.posted}) == 1
    assert [one["object"] for one in audited("notification.dead")] == [str(delivery.id)]
    assert tick() == 0

    root = Client()
    world.viewer.is_staff = world.viewer.is_superuser = True
    world.viewer.save()
    root.force_login(world.viewer)
    again = {"action": "send_chosen_again", "_selected_action": [str(delivery.id)]}
    root.post("/admin/approvals/delivery/", again)
    tick()

    delivery.refresh_from_db()
    assert (delivery.status, len(receiver.posted)) == ("sent", send.MAX_ATTEMPTS + 1)
    assert len({one.headers["Interlock-Event-Id"] for one in receiver.posted}) == 1
    assert [one["actor"] for one in audited("notification.resent")] == ["viewer"]
    page = root.get(f"/admin/approvals/endpoint/{hook.id}/change/").content.decode()
    assert receiver.url not in page and KEY not in page


def test_an_attempt_that_died_is_made_again_and_a_live_one_is_not(
    world: World, receiver: Receiver
) -> None:
    endpoint(world, receiver.url)
    tell(world.ask())
    fan_out()

    (claimed,) = send.claim()

    assert send.claim() == [], "somebody is at it"
    come_due()
    (again,) = send.claim()
    send.attempt([claimed])
    assert Delivery.objects.get(id=claimed.id).status == "sending", "the old one writes nothing"
    send.attempt([again])
    assert Delivery.objects.get(id=claimed.id).status == "sent"
    assert len(receiver.posted) == 2
    assert len({one.headers["Interlock-Event-Id"] for one in receiver.posted}) == 1


def test_slack_gets_a_text_in_which_nothing_is_markup(world: World, receiver: Receiver) -> None:
    endpoint(world, receiver.url, "slack", min_risk="high")
    world.agent.name = "<!channel>&co"
    world.agent.save()
    tell(world.ask("issue_refund", REFUND, risk="high"))
    tell(world.ask(risk="low"))

    tick()

    (posted,) = receiver.posted
    text = json.loads(posted.body)["text"]
    assert "issue_refund (high risk) waits for a decision" in text
    assert "&lt;!channel&gt;&amp;co" in text
    assert "Interlock-Signature" not in posted.headers


def test_a_private_address_is_refused_unless_a_setting_allows_it(
    world: World, receiver: Receiver, settings: Any
) -> None:
    settings.INTERLOCK_WEBHOOK_PRIVATE = False
    endpoint(world, receiver.url.replace("http://127.0.0.1", "https://localhost"))
    tell(world.ask())

    tick()

    assert receiver.posted == []
    assert "private network" in Delivery.objects.get(channel="webhook").last_error
    for address in (
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "0.1.2.3", "::1", "fe80::1%eth0",
        "fd00::1", "fec0::1", "::7f00:1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1",
    ):  # fmt: skip
        assert not is_public(address), address
    assert is_public("93.184.216.34") and is_public("2606:4700::6810:84e5")
    for url in (
        "http://example.org/", "ftp://example.org", "https://user:pw@example.org", "https://", "x",
        "https://[::1", "https://example.org:99999/",
    ):  # fmt: skip
        with pytest.raises(Undeliverable):
            checked(url)
    with pytest.raises(Undeliverable):
        resolve("2130706433", 443)


def test_people_choose_what_comes_over_which_channel(world: World, receiver: Receiver) -> None:
    give_mail(world.approver, world.approver2)
    endpoint(world, receiver.url, owner=world.approver)
    client = Client()
    client.force_login(world.approver)

    page = {"low:email": "1", "medium:webhook": "1", "time_zone": "Europe/Berlin", "digest": "none"}
    assert client.post("/settings/notifications/", page).status_code == 302
    tell(world.ask(risk="medium"))
    tell(world.ask(risk="low"))
    tick()

    assert not Delivery.objects.filter(person=world.approver, channel="in_app").exists()
    assert [one.to for one in mail.outbox] == [["approver@example.org"]]
    assert "(low risk)" in mail.outbox[0].subject
    (posted,) = receiver.posted
    assert json.loads(posted.body)["data"]["risk"] == "medium"
    assert Delivery.objects.filter(person=world.approver2, channel="in_app").count() == 2

    wrong = client.post(
        "/settings/notifications/", {**page, "time_zone": "Mars", "quiet_from": "22:00"}
    )
    assert wrong.status_code == 422
    assert "no such time zone" in wrong.content.decode()


def test_quiet_hours_and_digests_move_mails_in_the_persons_own_time(world: World) -> None:
    give_mail(world.approver)
    night = dt.datetime(2026, 7, 1, 21, 30, tzinfo=dt.UTC)  # half past eleven in Berlin
    quiet = {"time_zone": "Europe/Berlin", "quiet_from": dt.time(22), "quiet_until": dt.time(7)}
    both = {(risk, "email") for risk in ("low", "medium", "high", "critical")}

    save(world.approver, both, {**quiet, "digest": "hourly"})

    wishes = preferences_of(world.approver)
    morning = dt.datetime(2026, 7, 2, 5, 0, tzinfo=dt.UTC)
    noon = dt.datetime(2026, 7, 2, 10, 20, tzinfo=dt.UTC)
    assert wishes.mail_time("high", night) == (morning, False)
    assert wishes.mail_time("critical", night) == (night, False)
    assert wishes.mail_time("low", night) == (morning, True)
    assert wishes.mail_time("low", noon) == (noon.replace(hour=11, minute=0), True)
    assert wishes.mail_time("high", noon) == (noon, False)
    QuietTime.objects.update(digest="daily")
    daily = preferences_of(world.approver).mail_time("medium", noon)
    assert daily == (dt.datetime(2026, 7, 3, 6, 0, tzinfo=dt.UTC), True)

    for _ in range(3):
        tell(world.ask(risk="low"))
    tick()
    assert mail.outbox == []
    come_due()
    tick()
    (digest,) = mail.outbox
    assert digest.subject == "[Interlock] 3 requests in your inbox"
    assert digest.body.count("/inbox/") == 3
    assert set(Delivery.objects.filter(channel="email").values_list("status", flat=True)) == {
        "sent"
    }


def test_the_bell_lists_only_what_the_person_may_still_see(world: World) -> None:
    interrupt = world.ask()
    tell(interrupt)
    tick()
    client = Client()
    client.force_login(world.approver)
    assert "Notifications: 1 unread" in client.get("/notifications/").content.decode()

    client.get(f"/inbox/{interrupt.id}/")
    assert Interrupt.objects.get(id=interrupt.id).status == "open", "a link never decides"
    other = Delivery.objects.get(person=world.approver2)
    client.post("/notifications/", {"notification": str(other.id)})
    other.refresh_from_db()
    assert other.read_at is None, "it is somebody else's"
    client.post("/notifications/")
    assert "unread" not in client.get("/notifications/").content.decode()

    Membership.objects.filter(user=world.approver).delete()
    assert "write_file" not in client.get("/notifications/").content.decode()


def test_an_admin_enters_an_endpoint_and_sees_its_key_once(
    world: World, receiver: Receiver
) -> None:
    world.viewer.is_staff = world.viewer.is_superuser = True
    world.viewer.save()
    root = Client()
    root.force_login(world.viewer)
    form = {
        "project": str(world.project.id), "name": "Pager", "channel": "webhook",
        "address": f"{receiver.url}/secret-path", "min_risk": "low", "is_active": "on",
    }  # fmt: skip

    answer = root.post("/admin/approvals/endpoint/add/", form)

    stored = Endpoint.objects.get()
    assert "ilw_" in answer.content.decode()
    columns = b"".join(map(bytes, Endpoint.objects.values_list("url", "secret").get()))
    assert b"secret-path" not in columns and b"ilw_" not in columns
    pages = [f"/admin/approvals/endpoint/{stored.id}/change/", "/admin/approvals/endpoint/"]
    for page in pages:
        text = root.get(page).content.decode()
        assert "secret-path" not in text and "ilw_" not in text
    assert "secret-path" not in json.dumps(audited("permission.changed"))
    root.post(pages[0], {**form, "address": "", "name": "Beeper"})
    tell(world.ask())
    tick()
    assert receiver.posted[0].path == "/secret-path"
    refused = root.post(
        "/admin/approvals/endpoint/add/", {**form, "name": "x", "address": "file:///etc"}
    )
    assert "Cannot be used" in refused.content.decode()


def test_who_left_the_project_gets_no_mail_or_post_that_was_due_later(
    world: World, receiver: Receiver
) -> None:
    give_mail(world.approver)
    endpoint(world, receiver.url, owner=world.approver)
    tell(world.ask(risk="high"))
    fan_out()
    assert Delivery.objects.filter(status="pending").count() == 2
    Membership.objects.filter(user=world.approver).delete()

    send.send_due()

    assert (mail.outbox, receiver.posted) == ([], [])
    assert Delivery.objects.filter(status="dropped").count() == 2


def test_an_address_that_cannot_be_posted_to_fails_alone(world: World, receiver: Receiver) -> None:
    endpoint(world, f"{receiver.url}/h\u00fcte")
    endpoint(world, receiver.url, "slack")
    tell(world.ask(risk="high"))

    tick()

    assert len(receiver.posted) == 1
    assert "percent-encoded" in Delivery.objects.get(channel="webhook").last_error
