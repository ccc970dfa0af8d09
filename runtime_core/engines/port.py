"""What an engine is shown and what it may answer: a closed set of moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime_core.engines.nodes import Node
from runtime_core.tools.ledger import CallRecord


@dataclass(frozen=True, slots=True)
class View:
    """Where a run is: whether the model has the last word, what it said, and its calls as the ledger has them.

    `node` is the one that a graph's last answer named; empty where the run begins.
    """

    answered: bool
    text: str
    calls: Sequence[CallRecord]
    node: str = ""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send the conversation, with the results of the ended calls, to the model."""


@dataclass(frozen=True, slots=True)
class RunCall:
    """Execute this call."""

    call: CallRecord


@dataclass(frozen=True, slots=True)
class AskPeople:
    """Nothing can go on before a person decides."""


@dataclass(frozen=True, slots=True)
class AwaitChildren:
    """Nothing can go on before the runs that work for this one have ended."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is complete with this answer."""

    output: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The run cannot go on."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunNode:
    """Run this node of a graph on the state."""

    name: str
    run: Node


Move = AskModel | RunCall | RunNode | AskPeople | AwaitChildren | Finish | GiveUp


class Engine(Protocol):
    """Decides the next move from what is known; the same view always gives the same move."""

    def next_move(self, view: View) -> Move: ...
