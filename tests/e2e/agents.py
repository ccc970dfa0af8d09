"""The agents that these tests run beside the demo's own, each with the script that it plays."""

from __future__ import annotations

from typing import Any

from tests.e2e.texts import CANARIES, HOSTILE_TEXT, PLANTED

Turn = dict[str, Any]
TOOLS = [
    "post_notice",
    "erase_board",
    "read_board",
    "watch_board",
    "recite",
    "stumble",
    "ask_human",
]
PERMISSIONS = {"*": "allow", "post_notice": "ask", "erase_board": "ask"}


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def turn(text: str, *calls: dict[str, Any]) -> Turn:
    return {"text": text, "calls": list(calls)}


# Written in pieces, so that what a stream shows has to be put together to be seen.
_SPILL = (
    "import sys\n"
    f"for piece in {[PLANTED['stdout'][:9], PLANTED['stdout'][9:]]!r}: print(piece, end='', flush=True)\n"
    f"sys.stderr.write({PLANTED['stderr']!r}); sys.exit(3)"
)
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
    "planted": [
        turn(f"I use {PLANTED['model text']}.",
             call("recite", what="planted result"), call("stumble", what="planted error"),
             call("murmur", what="planted progress"), call("recite", what="x", **{PLANTED["argument name"]: 1}),
             call("read_board", at=[PLANTED["invalid arguments"]]), call(PLANTED["unknown tool"], a=1),
             call("write_file", path=f"notes/{PLANTED['file name']}.txt", content=f"token: {PLANTED['file content']}"),
             call("run_command", argv=["python3", "-c", _SPILL])),
        turn("I post it.", call("post_notice", text=f"use {PLANTED['arguments']} from now on")),
        turn("Or ask.", call("ask_human", question=f"Is {PLANTED['question']} the password?")),
        turn("Again.", call("post_notice", text="the last one")),
        turn(f"That was {PLANTED['model text']}."),
    ],
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {
    "planted": {
        "instructions": f"Never say {PLANTED['instructions']} to anybody.",
        "tools": [*TOOLS, "murmur", "write_file", "run_command"],
        "workspace": "evals/fixtures/slugify",
    }
}
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
        | MORE.get(name, {})
        for name in SCRIPTS
    ]
