"""What may go wrong while something is sent."""

from __future__ import annotations


class Undeliverable(Exception):
    """An attempt failed; the text says why, without any secret."""
