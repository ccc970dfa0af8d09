"""Addresses of the dashboard, runs, traces, audit and agents."""

from __future__ import annotations

from django.urls import path

from traces.views import agents, audit, exports, home, personal, policies, run, runs, system, trace

urlpatterns = [
    path("", home.show, name="home"),
    path("runs/", runs.index, name="runs"),
    path("runs/new/", runs.new, name="run-new"),
    path("runs/<uuid:run_id>/", run.show, name="run"),
    path("runs/<uuid:run_id>/cancel/", run.cancel, name="run-cancel"),
    path("runs/<uuid:run_id>/force-stop/", run.force, name="run-force"),
    path("runs/<uuid:run_id>/pause/", run.pause, name="run-pause"),
    path("runs/<uuid:run_id>/resume/", run.resume, name="run-resume"),
    path("runs/<uuid:run_id>/retry/", run.retry, name="run-retry"),
    path("runs/<uuid:run_id>/fork/", run.fork, name="run-fork"),
    path("runs/<uuid:run_id>/personal/", personal.show, name="run-personal"),
    path("runs/<uuid:run_id>/delete/", run.delete, name="run-delete"),
    path("runs/<uuid:run_id>/compensate/", run.compensate, name="run-compensate"),
    path("traces/", trace.index, name="traces"),
    path("traces/<uuid:run_id>/", trace.show, name="trace"),
    path("traces/<uuid:run_id>/spans/<uuid:span_id>/", trace.span, name="trace-span"),
    path("audit/", audit.index, name="audit"),
    path("agents/", agents.index, name="agents"),
    path("exports/", exports.index, name="exports"),
    path("exports/<uuid:job_id>/link/", exports.link, name="export-link"),
    path("exports/<uuid:job_id>/file/", exports.file, name="export-file"),
    path("policies/", policies.show, name="policies"),
    path("system/", system.show, name="system"),
]
