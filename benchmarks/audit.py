"""What the audit costs: adding an entry, sealing, and checking the whole chain."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.place import Place
from benchmarks.table import Figure


def measure(here: Place, entries: int) -> Iterator[Figure]:
    """Add entries one commit each, seal what is there, check all of it."""
    from runtime_core import ports
    from runtime_core.values import SYSTEM, Audit
    from traces.audit.sealer import seal
    from traces.audit.verify import verify

    adding = []
    for number in range(entries):
        began = time.perf_counter()
        ports.audit().record(
            [Audit("run.started", SYSTEM, "run", f"r{number}", data={"n": number})]
        )
        adding.append(time.perf_counter() - began)
    yield Figure.latency("audit: add an entry", adding, "p99 < 10 ms")
    began = time.perf_counter()
    seal()
    yield Figure("audit: seal", f"{entries / (time.perf_counter() - began):,.0f}/s")
    began = time.perf_counter()
    report = verify()
    rate = report.entries / (time.perf_counter() - began)
    yield Figure("audit: verify", f"{rate:,.0f}/s", goal="≥ 20,000/s")
