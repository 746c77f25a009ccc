"""Data for training: sources, records, shards, and the order they come in."""
