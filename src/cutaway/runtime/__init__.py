"""What runs a model: torch, or the native engine."""
