"""The embedded PostgreSQL and Valkey, and the data folder they live in."""
