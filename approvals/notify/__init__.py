"""Tells people that a request waits: notices are written with what they tell of, sent by a tick.

Read `outbox` (the notice), `fanout` (who gets it, over which channel), `send` (one attempt at a
time), then the channels `mail` and `webhook`. Messages carry the tool, its risk, the run, the expiry
and a link; never an argument.
"""
