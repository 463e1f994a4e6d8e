"""What must hold after a run, and what must have come out of it."""
