"""What a run of the simulator depends on: schedules, how a seed draws them, and how a failing one shrinks."""
