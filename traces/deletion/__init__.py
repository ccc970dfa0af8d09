"""Deleting what people said and what came of it: hidden in one commit, then gone from every table, with a receipt.

`reach` is what goes with a run or a thread, `requests` hides it, `plan` lists every table there is, `purge` deletes.
"""

from __future__ import annotations

from traces.deletion import requests

door = requests.Door

__all__ = ["door"]
