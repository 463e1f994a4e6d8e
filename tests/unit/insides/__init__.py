"""What other packages must not move: docs/insides.md."""
