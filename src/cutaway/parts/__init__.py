"""What several models share, and only that."""
