"""What operates the server: who may ask, how much, and what is told of it."""
