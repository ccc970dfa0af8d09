"""`policy`: what is kept how long. `classes`: where it is. `sweep`: lets go of it. `threads`, `audit`: the rest."""

from __future__ import annotations
