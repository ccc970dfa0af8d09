"""What must never run in a browser, and what must never be kept: written by models, tools and people alike."""

from __future__ import annotations

import hashlib
import string

MARK = "hostile"
HOSTILE = (
    f"<img src=x-{MARK} onerror=alert(1)>",
    f"</script><script>alert('{MARK}')</script>",
    f"[x](javascript:alert('{MARK}'))",
    f'<div hx-post="/approve/{MARK}" hx-trigger="load" class="{MARK}">',
    f"{MARK}:{{{{7*7}}}}{{% now 'Y' %}}",
    f'"><svg/onload=alert(1) class="{MARK}">',
    f"<a href=\"javascript:alert(1)\" class='{MARK}'>a</a>",
)
HOSTILE_TEXT = " ".join(HOSTILE)


def _letters(place: str, length: int) -> str:
    """Letters that look random and are the same in every process."""
    digest = "".join(hashlib.sha512(f"{place}{n}".encode()).hexdigest() for n in range(2))
    pairs = (int(digest[i : i + 2], 16) for i in range(0, len(digest), 2))
    return "".join(string.ascii_letters[pair % 52] for pair in pairs)[:length]


# In the form of real ones, and put together here so that no scanner takes this file for a leak.
CANARIES = {
    **{place: "ghp_" + _letters(place, 36) for place in ("input", "error", "comment", "answer")},
    **{place: "sk-test-" + _letters(place, 40) for place in ("result", "told", "args", "response")},
}
SPOKEN = {
    "hostile": HOSTILE_TEXT,
    "told hostile": HOSTILE_TEXT,
    "secret": f"the deploy key is {CANARIES['result']}",
    "secret error": CANARIES["error"],
    "told secret": f"login with {CANARIES['told']} was refused",
}

# One for every way in; each in the form of a real one, of another family than its neighbours.
_FORMS = (
    lambda place: "ghp_" + _letters(place, 36),
    lambda place: "sk-test-" + _letters(place, 40),
    lambda place: "xoxb-1234567890-" + _letters(place, 24),
    lambda place: "glpat-" + _letters(place, 20),
)
WAYS_IN = (
    "prompt", "metadata value", "metadata key", "thread metadata", "instructions", "model text", "arguments",
    "argument name", "invalid arguments", "unknown tool", "tool result", "tool error", "inner error", "progress",
    "stderr", "stdout", "file name", "file content", "question", "answer", "edited arguments", "reason",
    "idempotency key", "user agent", "referer", "query", "bearer",
)  # fmt: skip
PLANTED = {place: _FORMS[n % 4](f"planted {place}") for n, place in enumerate(WAYS_IN)}
SPOKEN |= {
    "planted result": f"the key is {PLANTED['tool result']}",
    "planted error": f"https://h.invalid/?key={PLANTED['tool error']}",
    "planted inner": f"login with {PLANTED['inner error']} was refused",
    "planted progress": f"I look for {PLANTED['progress']} now",
}
