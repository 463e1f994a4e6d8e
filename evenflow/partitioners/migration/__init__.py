"""Partitioners that keep keys whole and move some of them from worker to worker, so that loads stay level."""
