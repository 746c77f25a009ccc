"""Views of the machine as data: each is a pure function to a small typed result that turns into JSON."""
