"""The side that decides: who may, on exactly what, and the inbox in which they do.

The walk: policy (pure) → rulings (reads what it needs) → commands (the only writes) → queries and
showing (reads) → api, views with pages and forms, consumers. The runtime asks `guard` right before
an approved call runs.
"""
