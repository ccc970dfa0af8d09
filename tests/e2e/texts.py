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
