"""Two choices and more: PKG, and D-Choices, W-Choices and RR-Head for the head of the stream (paper 002)."""
