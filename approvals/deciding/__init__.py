"""The writes of a decision: entry (find, lock, ask) → commands → records; and the guard before execution."""
