"""Checkpoints in and out: one room for each kind of file."""
