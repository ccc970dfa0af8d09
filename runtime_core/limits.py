"""Every number that bounds the runtime, with its unit in its name, in one frozen place.

A deployment changes one through the setting `INTERLOCK_LIMITS = {"lease_seconds": 60, ...}`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """Bounds of the runtime; a value out of its range stops the process at start."""

    lease_seconds: int = 30
    heartbeat_seconds: int = 5
    self_fence_seconds: int = 25
    max_claims_without_progress: int = 5
    turn_seconds: float = 30.0
    liveness_grace_seconds: float = 0.7
    liveness_restart_seconds: float = 5.0

    input_bytes: int = 200_000
    metadata_bytes: int = 16_000
    queued_runs_per_project: int = 1_000

    max_steps: int = 50
    max_tokens: int = 400_000
    max_cost_usd: int = 5
    deadline_seconds: int = 3_600

    model_connect_seconds: float = 10.0
    model_first_token_seconds: float = 60.0
    model_between_tokens_seconds: float = 30.0
    model_total_seconds: float = 300.0
    model_retries: int = 4
    model_retries_per_run: int = 20
    fallback_after: int = 2
    backoff_base_seconds: float = 1.0
    backoff_max_seconds: float = 60.0
    park_after_seconds: float = 3.0
    malformed_calls_in_a_row: int = 5
    empty_answers_in_a_row: int = 2
    tool_calls_per_turn: int = 32
    checkpoints_kept: int = 50
    checkpoint_every_steps: int = 25
    checkpoint_pins_per_run: int = 100

    child_depth: int = 3
    children_per_run: int = 32
    tool_args_bytes: int = 1_000_000
    tool_args_depth: int = 64
    context_tokens: int = 120_000
    model_text_bytes: int = 1_000_000

    tool_seconds: int = 60
    tool_retries: int = 2
    tool_result_bytes: int = 64_000
    event_bytes: int = 64_000
    graph_state_bytes: int = 1_000_000
    delta_flush_seconds: float = 0.1
    delta_flush_bytes: int = 1_024

    interrupt_hours: int = 24
    cancel_poll_seconds: float = 0.5
    force_stop_after_seconds: int = 10

    page_size: int = 50
    page_size_max: int = 200
    events_page: int = 500
    socket_queue: int = 256


@functools.cache
def limits() -> RuntimeLimits:
    """The limits in force in this process."""
    return RuntimeLimits(**getattr(settings, "INTERLOCK_LIMITS", {}))
