"""Training with the extra `rl`. `make test-rl` installs it and runs these tests. Without it they fail."""
