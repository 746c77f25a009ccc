"""Text as tokens."""
