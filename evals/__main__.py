"""`python -m evals`: let the demo's agents work, answer them as people would, and check what came of it.

Real runs, tools, files and rows on services of their own; scripted unless INTERLOCK_MODEL names a model. Exits 1 if a
case fails.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from config.throwaway import throwaway_stack

FIX = "The slugify package has failing tests. Find out why and mend it."
BROKEN = {
    "path": "slugify/text.py",
    "content": "def slugify(title, separator='-'):\n    return title\n",
}
TOO_MUCH = {"order_id": "A-1002", "amount": "500.00", "reason": "Generous"}
Checks = dict[str, bool]


@dataclass(frozen=True)
class Case:
    """What an agent is asked, what people answer to its requests in turn, and what must then be true."""

    name: str
    agent: str
    text: str
    answers: Sequence[dict[str, Any]]
    check: Callable[[Any], Checks]


def fixed(run: Any) -> Checks:
    return {"tests pass": tests_pass(run), "one commit": commits(run) == 2}


def untouched(run: Any) -> Checks:
    return {"tests still fail": not tests_pass(run), "no commit": commits(run) == 1}


def refunded(order: str, *amounts: str) -> Callable[[Any], Checks]:
    """A check that exactly these amounts were refunded of the order."""

    def check(run: Any) -> Checks:
        from evals.shop.models import Refund

        rows = Refund.objects.filter(order__number=order).values_list("amount", flat=True)
        return {f"refunds are {list(amounts)}": list(rows) == [Decimal(a) for a in amounts]}

    return check


APPROVE = {"action": "approve"}
CASES = (
    Case("fix, approved", "code-fixer", FIX, [APPROVE], fixed),
    Case("fix, rejected", "code-fixer", FIX, [{"action": "reject", "reason": "No."}], untouched),
    Case("fix, edited wrong, then approved", "code-fixer", FIX,
         [{"action": "edit", "args": BROKEN}, APPROVE], fixed),
    Case("fix, edited wrong twice", "code-fixer", FIX,
         [{"action": "edit", "args": BROKEN}] * 2, untouched),
    Case("refund, approved", "refund-desk", "Order A-1001 arrived broken, please refund it.",
         [APPROVE], refunded("A-1001", "24.90")),
    Case("refund, asked again", "refund-desk", "Please refund order A-1001.",
         [], refunded("A-1001", "24.90")),
    Case("refund, over what was paid", "refund-desk", "An armrest of order A-1002 is damaged.",
         [{"action": "edit", "args": TOO_MUCH}], refunded("A-1002")),
    Case("refund, rejected", "refund-desk", "Order A-1003 never arrived.",
         [{"action": "reject", "reason": "It was delivered."}], refunded("A-1003")),
    Case("refund, no such order", "refund-desk", "Please refund order B-4711.",
         [], refunded("B-4711")),
)  # fmt: skip


def main() -> int:
    """Score the cases and print one line for each."""
    with throwaway_stack("interlock-evals-"):
        from django.db import connections

        from runtime_core import demo, ports

        demo.install()
        print(f"{'case':34} {'result':6} {'steps':>5} {'tokens':>7}  what was wrong")
        try:
            good = [score(case) for case in CASES]
        finally:
            ports.spans().flush()
            connections.close_all()
    print(f"{sum(good)} of {len(good)} cases passed")
    return 0 if all(good) else 1


def score(case: Case) -> bool:
    """Play one case; True if all of its checks hold."""
    run = play(case)
    checks = {"the run completed": run.status == "completed", **case.check(run)}
    wrong = [name for name, holds in checks.items() if not holds]
    word = "FAIL" if wrong else "pass"
    tokens = run.input_tokens + run.output_tokens
    print(f"{case.name:34} {word:6} {run.steps:5} {tokens:7}  {', '.join(wrong)}", flush=True)
    return not wrong


def play(case: Case) -> Any:
    """The run as it is when nobody is asked any more; a request without an answer in the case is rejected."""
    from approvals.deciding.commands import Opinion, decide
    from runtime_core import commands
    from runtime_core.loop.drive import advance
    from runtime_core.models import Interrupt, Project, Run

    project = Project.objects.get(slug="demo")
    operator, approver = person("operator"), person("approver")
    run = commands.start_run(operator, project=project, agent=case.agent, input=case.text)
    answers = iter(case.answers)
    for _ in range(5):
        advance("evals", run.id)
        asked = list(Interrupt.objects.filter(run=run, status="open"))
        for interrupt in asked:
            seen = {"version": interrupt.version, "digest": interrupt.digest}
            opinion = next(answers, {"action": "reject", "reason": "Enough."})
            decide(approver, interrupt.id, Opinion(**opinion, **seen))
        if not asked:
            break
    return Run.objects.get(id=run.id)


def person(name: str) -> Any:
    from django.contrib.auth.models import User

    from runtime_core.values import Actor

    return Actor(User.objects.get(username=name).pk, name)


def tests_pass(run: Any) -> bool:
    return in_workspace(run, sys.executable, "-Bm", "unittest", "-q").returncode == 0


def commits(run: Any) -> int:
    return len(in_workspace(run, "git", "log", "--format=%h").stdout.splitlines())


def in_workspace(run: Any, *command: str) -> subprocess.CompletedProcess[str]:
    from runtime_core.tools.workspace import path_of

    folder = path_of(run.id)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
