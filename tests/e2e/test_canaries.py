"""H2, H7: a secret planted in every way in comes out of none, and stands in the database under seal alone."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.e2e.product import Product
from tests.e2e.texts import PLANTED

pytestmark = pytest.mark.timeout(120)

# What a way in is not kept of at all; the model is told of all others.
NEVER_TOLD = {
    "metadata value",
    "metadata key",
    "thread metadata",
    "instructions",
    "inner error",
    "progress",
    "idempotency key",
    "user agent",
    "referer",
    "query",
    "bearer",
}


def test_h2_h7_planted_secrets_come_out_nowhere(product: Product) -> None:
    run = start(product)
    heard: list[str] = []
    ears = [
        threading.Thread(target=listen, args=(product, run, heard))
        for listen in (hear_socket, hear_stream)
    ]
    for ear in ears:
        ear.start()
    walk_through(product, run)
    product.wait_for_status(run, "completed")
    for ear in ears:
        ear.join(20)
        assert not ear.is_alive(), "a stream did not end with its run"

    told = "\n".join(product.told(run))
    missing = {place for place, secret in PLANTED.items() if secret not in told} - NEVER_TOLD
    assert not missing, f"the model was not told {missing}: for these the test proves nothing"
    assert len(heard) > 20
    assert any("[REDACTED:" in text for text in heard)
    clean("sockets and streams", "".join(heard))
    clean("what was put together of a stream", "".join(spoken(heard)))
    every_page_and_answer_is_clean(product, run)
    clean("the logs", product.logs())
    clean("the database", dump(product))


def start(product: Product) -> str:
    """A run with a secret in everything that a caller can send."""
    hostile = {
        "Idempotency-Key": PLANTED["idempotency key"],
        "User-Agent": f"curl {PLANTED['user agent']}",
        "Referer": f"{product.origin}/?token={PLANTED['referer']}",
    }
    with product.api("operator") as client:
        thread = (
            client.post("/threads", json={"metadata": {"note": PLANTED["thread metadata"]}})
            .raise_for_status()
            .json()
        )
        body = {
            "agent": "planted",
            "input": f"Deploy with {PLANTED['prompt']} please",
            "metadata": {"note": PLANTED["metadata value"], PLANTED["metadata key"]: "x"},
            "thread_id": thread["id"],
        }
        made = client.post(f"/runs?token={PLANTED['query']}", json=body, headers=hostile)
        assert made.is_success, made.text
        again = client.post(f"/runs?token={PLANTED['query']}", json=body, headers=hostile)
        assert again.json()["id"] == made.json()["id"]
    for headers in (
        {"Authorization": f"Bearer {PLANTED['bearer']}"},
        {"Cookie": f"sessionid={PLANTED['bearer']}"},
    ):
        refused = httpx.get(f"{product.origin}/api/v1/runs", headers=headers, timeout=20)
        assert refused.status_code == 401
        clean("a refusal", refused.text)
    return str(made.json()["id"])


def walk_through(product: Product, run: str) -> None:
    asked = product.open_interrupt(run)
    edited = {"args": {"text": f"use {PLANTED['edited arguments']}"}, "reason": "see the text"}
    decide(product, asked, action="edit", **edited)
    decide(
        product,
        product.open_interrupt(run),
        action="respond",
        response=f"It is {PLANTED['answer']}",
    )
    decide(
        product,
        product.open_interrupt(run),
        action="reject",
        reason=f"{PLANTED['reason']} is not to be shown",
    )


def decide(product: Product, asked: Any, **body: Any) -> None:
    body |= {"version": asked["version"], "digest": asked["digest"]}
    with product.api("approver") as client:
        headers = {"Idempotency-Key": f"canary-{asked['id']}"}
        answer = client.post(f"/interrupts/{asked['id']}/decisions", json=body, headers=headers)
        assert answer.is_success, answer.text


def hear_socket(product: Product, run: str, heard: list[str]) -> None:
    bearer = {"Authorization": f"Bearer {product.tokens['viewer']}"}
    address = f"{product.origin.replace('http', 'ws', 1)}/api/v1/ws/runs/{run}/"
    with connect(address, additional_headers=bearer) as socket:
        for frame in socket:
            heard.append(str(frame))
            if json.loads(frame)["type"] == "done":
                return


def hear_stream(product: Product, run: str, heard: list[str]) -> None:
    with product.api("viewer") as client:
        wanted = {"Accept": "text/event-stream"}
        with client.stream("GET", f"/runs/{run}/events", headers=wanted, timeout=60) as answer:
            for line in answer.iter_lines():
                heard.append(line)
                if line == "event: done":
                    return


def spoken(heard: list[str]) -> list[str]:
    """The texts of events, without what stands around them: a secret cut into pieces would be whole again."""
    events = [
        json.loads(text.removeprefix("data: "))
        for text in heard
        if text.startswith(("{", "data: {"))
    ]
    return [str(e["data"].get("text") or e["data"].get("message") or "") for e in events]


def every_page_and_answer_is_clean(product: Product, run: str) -> None:
    asked = [row["id"] for row in product.rows("SELECT id FROM interrupt WHERE run_id = %s", run)]
    spans = [row["id"] for row in product.rows("SELECT id FROM span WHERE run_id = %s", run)]
    pages = [
        "/",
        "/runs/",
        f"/runs/{run}/",
        "/inbox/?view=decided",
        *(f"/inbox/{i}/" for i in asked),
        "/traces/",
        f"/traces/{run}/",
        *(f"/traces/{run}/?span={s}" for s in spans),
        f"/audit/?run={run}",
        "/agents/",
    ]
    for name in ("admin", "approver", "viewer"):
        with httpx.Client(
            base_url=product.origin, cookies=product.cookies(name), timeout=30
        ) as client:
            for address in pages if name == "admin" else pages[:6]:
                clean(f"{address} for {name}", client.get(address, follow_redirects=True).text)
    with httpx.Client(
        base_url=product.origin, cookies=product.cookies("admin"), timeout=30
    ) as client:
        for model in (
            "run",
            "toolcall",
            "interrupt",
            "checkpoint",
            "agentversion",
            "agent",
            "step",
        ):
            listed = client.get(f"/admin/runtime_core/{model}/")
            clean(f"the admin's {model}", listed.text)
        (version,) = product.rows(
            "SELECT v.id FROM agent_version v JOIN agent a ON a.current_id = v.id WHERE a.name = 'planted'"
        )
        shown = client.get(f"/admin/runtime_core/agentversion/{version['id']}/change/")
        assert "Never say" in shown.text
        clean("an agent's definition in the admin", shown.text)
    parts = ["", "/events?limit=500", "/tool-calls", "/trace", "/checkpoints", "/provenance"]
    with product.api("viewer") as client:
        for path in (
            "/runs",
            *(f"/runs/{run}{part}" for part in parts),
            "/audit",
            "/agents",
            *(f"/interrupts/{i}" for i in asked),
        ):
            clean(path, client.get(path).text)


def dump(product: Product) -> str:
    """Every row of every table as COPY writes it; what is stored as bytes is looked at as bytes too."""
    tables = [
        row["name"]
        for row in product.rows(
            "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
        )
    ]
    written: list[str] = []
    for table in tables:
        with product._database.cursor() as cursor, cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
            written += (bytes(row).decode("utf-8", "replace") for row in copy)
        with (
            product._database.cursor() as cursor,
            cursor.copy(f'COPY "{table}" TO STDOUT (FORMAT binary)') as copy,
        ):
            written += (bytes(row).decode("latin-1") for row in copy)
    assert len(tables) > 30 and len(written) > 200
    return "\n".join(written)


def clean(where: str, text: str) -> None:
    """No planted secret, whole or with only its ends cut off."""
    found = [place for place, secret in PLANTED.items() if secret[6:-4] in text]
    assert found == [], f"{where} holds: {found}"
