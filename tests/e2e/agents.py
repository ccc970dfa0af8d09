"""The agents that these tests run beside the demo's own, each with the script that it plays."""

from __future__ import annotations

from typing import Any

from tests.e2e.texts import CANARIES, HOSTILE_TEXT

Turn = dict[str, Any]
TOOLS = ["post_notice", "erase_board", "read_board", "watch_board", "recite", "stumble", "ask_human"]
PERMISSIONS = {"*": "allow", "post_notice": "ask", "erase_board": "ask"}


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def turn(text: str, *calls: dict[str, Any]) -> Turn:
    return {"text": text, "calls": list(calls)}


SCRIPTS: dict[str, list[Turn]] = {
    "notices": [
        turn("I would like to post the first notice.", call("post_notice", text="The first notice")),
        turn("Now the second one.", call("post_notice", text="The second notice")),
        turn("Both are dealt with."),
    ],
    "eraser": [
        turn("The board is full.", call("erase_board", board="north")),
        turn("That is that."),
    ],
    "asker": [
        turn("I need to know.", call("ask_human", question="Which board should it be?")),
        turn("And the colour.", call("ask_human", question="Which colour?", choices=["red", "blue"])),
        turn("Thank you."),
    ],
    "talker": [
        *(turn(f"Round {n}: " + "word after word " * 12, call("read_board", at=f"board {n}"),
               call("read_board", at=f"other board {n}")) for n in range(6)),
        turn("I want to post something.", call("post_notice", text="What I saw")),
        turn("All told, " + "and so on " * 30),
    ],
    "watcher": [turn("I watch the board now.", call("watch_board")), turn("Done.")],
    "slow": [turn("A long story: " + "once upon a time there was a board. " * 80)],
    "broken": [{"text": "I try.", "error": {"code": "model_rejected", "message": "there is no such model"}}],
    "hostile": [
        turn(HOSTILE_TEXT, call("recite", what="hostile"), call("stumble", what="told hostile"),
             call("recite", what=HOSTILE_TEXT)),
        turn("Now that one.", call("post_notice", text=HOSTILE_TEXT)),
        turn("And a question.", call("ask_human", question=HOSTILE_TEXT, choices=[HOSTILE_TEXT, "b"])),
        turn(HOSTILE_TEXT),
    ],
    "leaky": [
        turn(f"I found {CANARIES['answer']} in the file.", call("recite", what="secret"),
             call("stumble", what="secret error"), call("stumble", what="told secret")),
        turn("I post it.", call("post_notice", text=f"use {CANARIES['args']} from now on")),
        turn("Or ask.", call("ask_human", question="What is the password?")),
        turn(f"The key {CANARIES['answer']} works."),
    ],
}  # fmt: skip
PAUSES_MS = {"slow": 40, "talker": 5, "notices": 2}


def definitions(folder: str) -> list[dict[str, Any]]:
    """What `agents apply` would read, with the scripts in this folder."""
    return [
        {
            "name": name,
            "script": f"{folder}/{name}.yaml",
            "instructions": "Do as the script says.",
            "tools": TOOLS,
            "permissions": PERMISSIONS,
        }
        for name in SCRIPTS
    ]
