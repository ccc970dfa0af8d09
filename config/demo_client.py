"""The demo's way to talk to the product: its public HTTP API, as any script would."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

TIMEOUT_S = 30


class Client:
    """One person's token on one running product."""

    def __init__(self, base: str, token: str) -> None:
        self._base = base
        self._token = token

    def get(self, path: str) -> Any:
        """Answer of a read. CommandError with the API's own words if it fails."""
        return self._call("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Answer of a write. CommandError with the API's own words if it fails."""
        return self._call("POST", path, body)

    def follow(self, run_id: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """Events of a run as they come (server-sent events), until its stream ends."""
        request = self._request("GET", f"/api/v1/runs/{run_id}/events?after={after}")
        request.add_header("Accept", "text/event-stream")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - loopback
            for line in response:
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    if "seq" in event:
                        yield event

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = self._request(method, path, body)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise CommandError(f"{method} {path}: {error.code} {_words(error)}") from error
        except OSError as error:
            raise CommandError(f"{method} {path}: {error}") from error

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> urllib.request.Request:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return urllib.request.Request(  # noqa: S310 - the address is our own
            self._base + path, data=data, method=method, headers=headers
        )


def _words(error: urllib.error.HTTPError) -> str:
    try:
        problem = json.load(error)
    except ValueError:
        return error.reason
    return str(problem.get("detail") or problem.get("title") or error.reason)
