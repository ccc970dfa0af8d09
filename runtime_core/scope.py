"""Whose data is at work: set where a run, an agent or a tool is known, so that what redacts knows which rules hold."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Scope:
    """A project, and within it maybe an agent and a tool."""

    project: uuid.UUID
    agent: uuid.UUID | None = None
    tool: str = ""


class _OfARun(Protocol):
    project_id: uuid.UUID
    agent_id: uuid.UUID


P = ParamSpec("P")
R = TypeVar("R")

_current: ContextVar[Scope | None] = ContextVar("scope", default=None)


def current() -> Scope | None:
    """What is at work here; None if nobody has said."""
    return _current.get()


@contextmanager
def within(project: uuid.UUID, agent: uuid.UUID | None = None) -> Iterator[None]:
    """The block works on data of this project, and of this agent."""
    token = _current.set(Scope(project, agent))
    try:
        yield
    finally:
        _current.reset(token)


def of_run(run_of: Callable[..., _OfARun]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that works on the data of the run that `run_of` finds in its arguments."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
            run = run_of(*args, **kwargs)
            with within(run.project_id, run.agent_id):
                return function(*args, **kwargs)

        return scoped

    return decorate
