"""Types of arrays, a user's columns as arrays, and compiled kernels with their cache on disk."""
