"""Checkpoints: small rows that say from where a run may go on, verified before they are used."""
