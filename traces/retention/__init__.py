"""`policy`: what is kept how long. `classes`: where it is. `sweep`: lets go of it. `threads`: whole conversations."""

from __future__ import annotations
