"""Scenarios of the closed loop: one for each shape of load, and the grid of simulated loads (`grid`)."""
