"""What comes out, and where: every sink, changes, updates, and how a reader sees each row once."""
