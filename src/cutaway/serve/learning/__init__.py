"""Training that is watched: a small model learns a text, a step at a time, and every step can be gone back to."""
