"""The side that decides: who may, on exactly what, and the inbox in which they do.

The walk, from the rows up: models → policy (which one applies; pure rules) → people (who may decide, now) →
deciding (the only writes of a decision) → queries (reads) → teamwork (claims, escalation, presence) → grants
(remembered approvals) → notify → inbox (pages) → api, consumers, urls. The runtime asks `deciding.guard`
right before an approved call runs.
"""
