"""Keeps the whole product running as one command: services, web, worker, beat."""
