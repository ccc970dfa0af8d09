"""`manage.py runs start|list|show|cancel`: runs from the command line."""

from __future__ import annotations

import json
import sys
import time
import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_core import access, commands, queries
from runtime_core.access import Can
from runtime_core.errors import InvalidInput
from runtime_core.events import read
from runtime_core.events.read import Frame
from runtime_core.limits import limits
from runtime_core.management.people import actor, add_person_arguments, person, project
from runtime_core.models import Run
from runtime_core.states import RunStatus

POLL_SECONDS = 0.2
LIMITS = ("max_steps", "max_tokens", "max_cost_usd", "deadline_s")
# Nothing moves in these before somebody does something.
STANDING = frozenset({RunStatus.INTERRUPTED, RunStatus.PAUSED})


class Command(BaseCommand):
    """Start, list, show and cancel runs."""

    help = "Start, list, show and cancel runs."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        parts = parser.add_subparsers(dest="what", required=True)
        start = parts.add_parser("start", help="start a run")
        start.add_argument("--agent", required=True)
        start.add_argument("--input", required=True, help="the task; - reads it from stdin")
        start.add_argument("--follow", action="store_true", help="print events until it ends")
        for name in LIMITS:
            kind = float if name == "max_cost_usd" else int
            start.add_argument(f"--{name.replace('_', '-')}", type=kind)
        add_person_arguments(start)
        listing = parts.add_parser("list", help="list the newest runs")
        listing.add_argument("--status", choices=[status.value for status in RunStatus])
        add_person_arguments(listing)
        for name in ("show", "cancel"):
            one = parts.add_parser(name, help=f"{name} one run")
            one.add_argument("run")
            one.add_argument("--user", help="who does it; default: the only superuser there is")
            if name == "show":
                one.add_argument("--follow", action="store_true", help="print events until it ends")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what the subcommand says."""
        getattr(self, f"_{options['what']}")(options)

    def _start(self, options: dict[str, Any]) -> None:
        place, who = project(options["project"]), person(options["user"])
        given = {name: options[name] for name in LIMITS if options[name] is not None}
        text = (
            sys.stdin.read(limits().input_bytes + 1)
            if options["input"] == "-"
            else options["input"]
        )
        run = commands.start_run(
            actor(who, place, Can.OPERATE),
            project=place,
            agent=options["agent"],
            input=text,
            limits=given or None,
        )
        if not options["follow"]:
            self.stdout.write(str(run.id))
            return
        self.stderr.write(f"run {run.id}")
        self._follow(run)

    def _list(self, options: dict[str, Any]) -> None:
        who = person(options["user"])
        places = access.visible_projects(who)
        if options["project"]:
            places = places.filter(id=project(options["project"]).id)
        for run in queries.runs(places, status=options["status"]).items:
            self.stdout.write(
                f"{run.id}  {run.status:<11}  {run.created_at:%Y-%m-%d %H:%M:%S}Z"
                f"  {run.agent.name}  {run.title}"
            )

    def _show(self, options: dict[str, Any]) -> None:
        run = self._run(options)
        if options["follow"]:
            self._follow(run)
            return
        facts = {
            "id": str(run.id),
            "status": run.status,
            "agent": f"{run.agent.name} v{run.agent_version.number}",
            "project": run.project.slug,
            "attempt": run.attempt,
            "steps": f"{run.steps} of {run.max_steps}",
            "tokens": f"{run.input_tokens + run.output_tokens} of {run.max_tokens}",
            "created": f"{run.created_at:%Y-%m-%d %H:%M:%S}Z",
            "waits for": ", ".join(map(str, queries.open_interrupts([run.id])[run.id])),
            "error": (run.error or {}).get("message", ""),
            "output": run.output or "",
        }
        for name, value in facts.items():
            if value != "":
                self.stdout.write(f"{name:<10} {value}")

    def _cancel(self, options: dict[str, Any]) -> None:
        run = self._run(options)
        who = actor(person(options["user"]), run.project, Can.OPERATE)
        self.stdout.write(commands.cancel_run(who, run).status)

    def _run(self, options: dict[str, Any]) -> Run:
        try:
            run_id = uuid.UUID(options["run"])
        except ValueError:
            raise InvalidInput(f"{options['run']!r} is not the id of a run") from None
        return queries.run(access.visible_projects(person(options["user"])), run_id)

    def _follow(self, run: Run) -> None:
        """Print events as they come; ends with the run, or where a person must act first."""
        seen = 0
        while True:
            head = read.heads([run.id]).get(run.id)
            if head is None:
                raise CommandError("the run is not there any more")
            frames = read.after(run.id, seen, limits().events_page)
            for frame in frames:
                self.stdout.write(line_of(frame))
                seen = frame.seq
            self.stdout.flush()
            if seen >= head.last_seq and (head.status.ended or head.status in STANDING):
                self._say_how_it_stands(run, head.status)
                return
            if not frames:
                time.sleep(POLL_SECONDS)

    def _say_how_it_stands(self, run: Run, status: RunStatus) -> None:
        if status is RunStatus.INTERRUPTED:
            asks = ", ".join(f"/inbox/{one}/" for one in queries.open_interrupts([run.id])[run.id])
            self.stderr.write(
                f"waits for a person: {asks}; then go on with: runs show {run.id} --follow"
            )
        elif status is RunStatus.PAUSED:
            self.stderr.write("paused: resume it on its page")
        elif status is not RunStatus.COMPLETED:
            raise CommandError(f"the run ended as {status.value}")


def line_of(frame: Frame) -> str:
    """One event as one line."""
    data = json.dumps(frame.data, ensure_ascii=False)
    return f"{frame.ts:%H:%M:%S}  {frame.seq:>5}  {frame.type:<16} {data}"
