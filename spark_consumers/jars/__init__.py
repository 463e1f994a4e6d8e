"""Jars that Spark needs, fetched once, compared with their SHA-256, and kept for good;
archives of their classes.

Called by `session`, `cluster`, and by the build of images.
"""
