"""`GET /metrics` for Prometheus: read from the database at each scrape, so that it is the same from every process."""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_GAUGES = {
    "interlock_interrupts_open": (
        "Interrupts that wait for a person",
        "SELECT count(*) FROM interrupt WHERE status = 'open'",
    ),
    "interlock_queue_oldest_seconds": (
        "Age of the oldest run that is due and that no worker has taken",
        "SELECT COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(available_at)), 0)"
        " FROM run WHERE status = 'pending' AND available_at <= clock_timestamp()",
    ),
    "interlock_leases_overdue": (
        "Runs whose worker's lease has run out and that were not queued again yet",
        "SELECT count(*) FROM run_lease WHERE until < clock_timestamp()",
    ),
    "interlock_audit_unsealed": (
        "Audit entries that wait to be sealed",
        "SELECT count(*) FROM audit_entry WHERE seq IS NULL",
    ),
}
_RUNS = "SELECT status, count(*) FROM run GROUP BY status"


class Figures(Collector):
    """A few counts, each one indexed query."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read every figure anew."""
        with connection.cursor() as cursor:
            runs = GaugeMetricFamily("interlock_runs", "Runs by status", labels=["status"])
            cursor.execute(_RUNS)
            for status, count in cursor.fetchall():
                runs.add_metric([status], count)
            yield runs
            for name, (help_text, query) in _GAUGES.items():
                cursor.execute(query)
                yield GaugeMetricFamily(name, help_text, value=float(cursor.fetchone()[0]))


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, for a superuser or a bearer of `METRICS_TOKEN`; 404 for everybody else."""
    if not (_has_token(request) or getattr(request.user, "is_superuser", False)):
        raise Http404
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE)


def _has_token(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "")
    expected = settings.METRICS_TOKEN
    return bool(expected) and hmac.compare_digest(given.encode(), f"Bearer {expected}".encode())
