"""A model provider for tests: a real, strict HTTP server that streams chat completions.

    with Provider() as provider:
        provider.then(text("Hello"))                   # its answers, in order; the last repeats
        provider.then(calls(("c1", "read", '{"path": "a"}')))
        ... point OPENAI_BASE_URL to provider.base_url ...
        provider.requests[0]["messages"]               # what it was asked

It answers 400 to bad JSON, unpaired or misplaced tool ids and arguments that are no JSON object, as
strict providers do, and counts open connections, bytes and frames, so that tests can see whether a
stream was really closed.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

Json = Any
DONE = "[DONE]"


@dataclass(frozen=True)
class Reply:
    """One HTTP response; `frames` are the data of its events: JSON, or text sent as it is."""

    frames: tuple[Json, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: Json = None
    """The body of an error response (`status` other than 200)."""
    pause: float = 0.0
    """Seconds before each frame."""
    wait: float = 0.0
    """Seconds before the response begins."""
    packet: Literal["frame", "byte", "whole"] = "frame"
    newline: str = "\n"
    comments: bool = False
    ending: Literal["end", "hang", "reset"] = "end"
    """`end` the response properly, `hang` until the client goes, or `reset` the connection."""

    def but(self, **changes: Any) -> Reply:
        """The same reply with changes."""
        return replace(self, **changes)


def chunk(delta: Json, finish_reason: str | None = None, **more: Json) -> Json:
    """One chunk of a completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-5-mini",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        **more,
    }


def usage_chunk(input_tokens: int = 100, output_tokens: int = 20) -> Json:
    """The last chunk, with the usage and no choice."""
    usage = {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    return {**chunk({}), "choices": [], "usage": usage}


def stream(deltas: Iterable[Json], finish_reason: str | None = "stop") -> Reply:
    """A whole stream: the role, the deltas, the finish reason, the usage and the end mark."""
    frames = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas)]
    if finish_reason is not None:
        frames += [chunk({}, finish_reason), usage_chunk(), DONE]
    return Reply(tuple(frames))


def text(content: str, size: int = 6, finish_reason: str = "stop") -> Reply:
    """An answer in plain text, in pieces of `size` characters."""
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    return stream(({"content": piece} for piece in pieces), finish_reason)


def calls(
    *asked: tuple[str, str, str], content: str = "", finish_reason: str = "tool_calls"
) -> Reply:
    """Tool calls, each as (id, tool, arguments), streamed as OpenAI does."""
    deltas: list[Json] = [{"content": content}] if content else []
    for index, (call_id, tool, arguments) in enumerate(asked):
        head = {"name": tool, "arguments": ""}
        deltas.append(
            tool_delta({"index": index, "id": call_id, "type": "function", "function": head})
        )
        for start in range(0, len(arguments), 8):
            piece = {"arguments": arguments[start : start + 8]}
            deltas.append(tool_delta({"index": index, "function": piece}))
    return stream(deltas, finish_reason)


def events(*sent: Json) -> Reply:
    """A stream of OpenAI's Responses API: each event with its name and its number."""
    return Reply(
        tuple(
            f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}"
            for number, event in enumerate(sent)
        )
    )


def tool_delta(*pieces: Json) -> Json:
    """The delta of a chunk that holds these pieces of tool calls."""
    return {"tool_calls": list(pieces)}


def error(
    status: int, message: str, code: str | None = None, kind: str = "error", **headers: str
) -> Reply:
    """An error response; header names are written with underscores."""
    body = {"error": {"message": message, "type": kind, "code": code, "param": None}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status=status, body=body, headers=named)


@dataclass
class Provider:
    """The server; a context manager. Its counters may be read at any time."""

    replies: list[Reply | Callable[[Json], Reply]] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why requests were answered with 400."""
    keys: list[str] = field(default_factory=list)
    open_connections: int = 0
    bytes_sent: int = 0
    frames_sent: int = 0
    closed_early: int = 0
    """Streams that the client closed before their end."""

    def __enter__(self) -> Self:
        self._guard = threading.Condition()
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.close_all()
        self._server.server_close()
        self._thread.join(5)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def then(self, *replies: Reply | Callable[[Json], Reply]) -> Self:
        """Answer with these next; a function gets the request's body."""
        with self._guard:
            self.replies.extend(replies)
        return self

    def wait(self, condition: Callable[[Provider], bool], seconds: float = 5.0) -> bool:
        """Wait until the condition holds; whether it did in time."""
        with self._guard:
            return self._guard.wait_for(lambda: condition(self), seconds)

    def count(self, **changes: int) -> None:
        with self._guard:
            for name, change in changes.items():
                setattr(self, name, getattr(self, name) + change)
            self._guard.notify_all()

    def reply_to(self, body: Json, key: str) -> Reply:
        with self._guard:
            self.requests.append(body)
            self.keys.append(key)
            self._guard.notify_all()
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(body) if callable(reply) else reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_all(self) -> None:
        for request in list(self._open):
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    provider: Provider
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.provider.count(open_connections=1)

    def finish(self) -> None:
        self.provider.count(open_connections=-1)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read the counters instead."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            if not self.path.endswith(("/chat/completions", "/responses")):
                return self._send(error(404, f"no such path {self.path}"))
            body = json.loads(raw)
            if not self.path.endswith("/responses"):
                check(body)
        except ValueError as problem:
            self.provider.refused.append(str(problem))
            return self._send(error(400, str(problem), kind="invalid_request_error"))
        self._send(self.provider.reply_to(body, self.headers.get("authorization", "")))

    def _send(self, reply: Reply) -> None:
        if not self._still_there(reply.wait):
            return
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        if reply.status == 200:
            self._send_stream(reply)
        else:
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    def _send_stream(self, reply: Reply) -> None:
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for packet in _packets(reply):
                if not self._still_there(reply.pause):
                    return
                self.wfile.write(b"%x\r\n%b\r\n" % (len(packet), packet))
                self.provider.count(bytes_sent=len(packet), frames_sent=1)
            self._end(reply)
        except OSError:
            self._gone()

    def _end(self, reply: Reply) -> None:
        if reply.ending == "hang":
            self._still_there(3600)
        elif reply.ending == "reset":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _still_there(self, seconds: float) -> bool:
        """Wait; False as soon as the client closes the connection or the server stops."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.02))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self._gone()
                return False
            if self.provider.stopping.is_set():
                self.close_connection = True
                return False
        return True

    def _gone(self) -> None:
        self.close_connection = True
        self.provider.count(closed_early=1)


def _packets(reply: Reply) -> Iterator[bytes]:
    frames = [_frame(frame, reply) for frame in reply.frames]
    if reply.packet == "whole":
        yield b"".join(frames)
        return
    for frame in frames:
        if reply.packet == "frame":
            yield frame
        else:
            yield from (frame[i : i + 1] for i in range(len(frame)))


def _frame(frame: Json, reply: Reply) -> bytes:
    end = reply.newline
    comment = f": keep-alive{end}{end}" if reply.comments else ""
    if isinstance(frame, str) and frame.startswith(("event:", ":")):
        return (comment + frame.replace("\n", end) + end + end).encode()
    data = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
    return f"{comment}data: {data}{end}{end}".encode()


def check(body: Json) -> None:
    """Raise ValueError if a strict provider would refuse the request."""
    if not isinstance(body, dict) or not body.get("stream"):
        raise ValueError("not a streaming request")
    if not body.get("messages"):
        raise ValueError("no messages")
    expected: set[str] = set()
    for position, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in expected:
                raise ValueError(
                    f"messages[{position}]: no call {message.get('tool_call_id')!r} before it"
                )
            expected.discard(message["tool_call_id"])
            continue
        if expected:
            raise ValueError(f"messages[{position}]: calls without result: {sorted(expected)}")
        expected = _check_calls(message.get("tool_calls") or [], position)
    if expected:
        raise ValueError(f"calls without result: {sorted(expected)}")
    for tool in body.get("tools") or []:
        if tool["function"]["parameters"].get("type") != "object":
            raise ValueError(f"tool {tool['function']['name']}: its parameters are no object")


def _check_calls(asked: list[Json], position: int) -> set[str]:
    ids = [call["id"] for call in asked]
    if len(set(ids)) != len(ids):
        raise ValueError(f"messages[{position}]: a tool call id twice")
    for call in asked:
        name = call["function"]["name"]
        if not name.replace("_", "").replace("-", "").isalnum() or len(name) > 64:
            raise ValueError(f"messages[{position}]: bad tool name {name!r}")
        if not isinstance(json.loads(call["function"]["arguments"]), dict):
            raise ValueError(f"messages[{position}]: arguments are no object")
    return set(ids)
