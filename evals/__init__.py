"""What the demo runs on: agents, their scripts, a repository to mend and a small shop."""

from __future__ import annotations
