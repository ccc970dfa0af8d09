"""The HTTP API of the runtime, as routers that `config` mounts: thin shells over commands and queries.

The walk of a request: problems (errors as problem+json) → auth → json_body and schemas (strict) → idempotency →
runs, events, threads, agents.
"""
