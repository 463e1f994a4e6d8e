"""The controller and its plans: who makes them, who follows them, and what happens to results."""
