"""Training: data in, a model out."""
