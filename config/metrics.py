"""`GET /metrics` for Prometheus: read from the database at each scrape, so that it is the same from every process."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from runtime_core.limits import limits

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_GAUGES = {
    "interlock_workers": (
        "Worker processes that have said lately that they live",
        "SELECT count(*) FROM worker WHERE stopped_at IS NULL AND missing_since IS NULL"
        " AND seen_at > clock_timestamp() - interval '15 seconds'",
    ),
    "interlock_runs_waiting_for_place": (
        "Runs that wait for a place of a tool's or a model's quota",
        "SELECT count(*) FROM run WHERE status = 'waiting' AND waits_for <> ''",
    ),
    "interlock_lease_age_seconds": (
        "How long ago the lease that was left alone for longest was renewed",
        "SELECT COALESCE(max(%(lease_seconds)s - EXTRACT(EPOCH FROM until - clock_timestamp())), 0)"
        " FROM run_lease",
    ),
    "interlock_event_lag_seconds": (
        "The longest that a run which is running has told nothing",
        "SELECT COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(last.ts)), 0) FROM run_lease, LATERAL ("
        "SELECT ts FROM event WHERE event.run_id = run_lease.run_id ORDER BY seq DESC LIMIT 1) AS last",
    ),
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
# What is told apart by labels: each value is one line of an answer.
_LABELLED: dict[str, tuple[Any, str, list[str], str]] = {
    "interlock_runs": (
        GaugeMetricFamily,
        "Runs by status",
        ["status"],
        "SELECT status, count(*) FROM run GROUP BY status",
    ),
    "interlock_queue_depth": (
        GaugeMetricFamily,
        "Runs in a project's queue, as counted within the last second",
        ["project"],
        "SELECT slug, queued FROM project_queue JOIN project ON project.id = project_id",
    ),
    "interlock_runs_reaped": (
        CounterMetricFamily,
        "Runs that were taken from lost workers",
        ["project"],
        "SELECT slug, reaped FROM project_queue JOIN project ON project.id = project_id",
    ),
    "interlock_permits_in_use": (
        GaugeMetricFamily,
        "Places of a quota that are taken",
        ["kind", "key"],
        "SELECT kind, key, count(held_by) FROM quota LEFT JOIN permit ON permit.quota_id = quota.id"
        " GROUP BY kind, key",
    ),
    "interlock_retention_rows": (
        CounterMetricFamily,
        "Rows that sweeps have let go of",
        ["data_class"],
        "SELECT data_class, rows FROM retention_total",
    ),
    "interlock_retention_age_seconds": (
        GaugeMetricFamily,
        "How long ago a class of data was swept",
        ["data_class"],
        "SELECT data_class, EXTRACT(EPOCH FROM clock_timestamp() - last_at) FROM retention_total",
    ),
    "interlock_retention_longest_seconds": (
        GaugeMetricFamily,
        "The longest transaction of the last sweep of a class",
        ["data_class"],
        "SELECT data_class, longest_ms / 1000.0 FROM retention_total",
    ),
    "interlock_permits": (
        GaugeMetricFamily,
        "Places that a quota has",
        ["kind", "key"],
        "SELECT kind, key, at_once FROM quota",
    ),
}


class Figures(Collector):
    """A few counts, each one indexed query."""

    def collect(self) -> Iterator[Metric]:
        """Read every figure anew."""
        with connection.cursor() as cursor:
            for name, (family, help_text, labels, query) in _LABELLED.items():
                figures = family(name, help_text, labels=labels)
                cursor.execute(query)
                for *values, count in cursor.fetchall():
                    figures.add_metric(values, count)
                yield figures
            for name, (help_text, query) in _GAUGES.items():
                cursor.execute(query, {"lease_seconds": limits().lease_seconds})
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
