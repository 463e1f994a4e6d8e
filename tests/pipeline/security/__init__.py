"""Logins, rights and secrets on a real broker."""
