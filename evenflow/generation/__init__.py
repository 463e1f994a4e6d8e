"""Generated streams: the laws by which keys are drawn, and random numbers that a snapshot can hold."""
