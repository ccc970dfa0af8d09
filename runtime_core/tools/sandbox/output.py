"""A command's output in bounded memory: its beginning, its rolling end, and a count of the rest."""

from __future__ import annotations

import codecs
import hashlib
import os
import select
import threading
from collections import deque

_CHUNK = 65_536
_POLL_MS = 100
_BINARY_SHARE = 0.3
_NEWS_BYTES = 4_000


class Output:
    """Reads a pipe on its own thread until it ends, is closed, or gave more than `hard_bytes`."""

    def __init__(self, fd: int, keep_bytes: int, hard_bytes: int) -> None:
        self.total = 0
        self.over = threading.Event()
        self._fd = fd
        self._head_room = keep_bytes // 2
        self._tail_room = keep_bytes - self._head_room
        self._hard = hard_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._has_nul = False
        self._sha = hashlib.sha256()
        self._news = bytearray()
        self._news_cut = False
        self._news_lock = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, name="sandbox-output", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Take what is still in the pipe, for at most `seconds`, then close it."""
        self._thread.join(seconds)
        self._closing.set()
        self._thread.join()
        os.close(self._fd)

    def take_news(self) -> str:
        """The newest of what came since the last call, decoded, to show while it runs."""
        with self._news_lock:
            news, self._news = bytes(self._news), bytearray()
            is_cut, self._news_cut = self._news_cut, False
        # A line that lost its beginning is not shown: without it, nobody knows a secret for one.
        return self._decoder.decode(news.partition(b"\n")[2] if is_cut else news)

    @property
    def dropped(self) -> int:
        """Bytes that came and were not kept."""
        return self.total - len(self._head) - self._tail_bytes

    @property
    def binary(self) -> bool:
        """True for what no person can read as text: NUL in it, or mostly not UTF-8."""
        if self._has_nul:
            return True
        text = self._decoded()
        return bool(text) and text.count("\ufffd") / len(text) > _BINARY_SHARE

    def text(self) -> str:
        """The output as text, with a note where bytes are missing; of binary only its size and
        digest.
        """
        if self.binary:
            return f"[binary output: {self.total} bytes, sha256 {self._sha.hexdigest()}]"
        return self._decoded()

    def _decoded(self) -> str:
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self.dropped:
            return (head + tail).decode("utf-8", "replace")
        # A character that the cut went through is left out rather than shown as damage.
        first = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
        while tail and tail[0] & 0xC0 == 0x80:
            tail = tail[1:]
        last = tail.decode("utf-8", "replace")
        return f"{first}\n[… {self.dropped} bytes of output dropped …]\n{last}"

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN | select.POLLHUP)
        while not self.over.is_set():
            if not poll.poll(_POLL_MS):
                if self._closing.is_set():
                    return
                continue
            chunk = os.read(self._fd, _CHUNK)
            if not chunk:
                return
            self._take(chunk)
            if self._closing.is_set():
                return

    def _take(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._sha.update(chunk)
        self._has_nul = self._has_nul or b"\0" in chunk
        with self._news_lock:
            self._news += chunk
            self._news_cut = self._news_cut or len(self._news) > _NEWS_BYTES
            self._news = self._news[-_NEWS_BYTES:]
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._keep_tail(chunk)
        if self.total > self._hard:
            self.over.set()

    def _keep_tail(self, chunk: bytes) -> None:
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes > self._tail_room:
            excess = self._tail_bytes - self._tail_room
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            self._tail_bytes -= min(len(first), excess)
