"""Tests of what all pages have in common."""
