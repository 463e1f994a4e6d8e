"""The Spark stages: interruptions, executors, checkpoints, two drivers, and jobs of a user's own."""
