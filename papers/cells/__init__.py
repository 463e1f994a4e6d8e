"""The cells of a run: which there are, the missing ones computed, all of them in one file."""
