"""Events: their types, appending them, reading after a cursor, and telling web processes that there are new ones."""
