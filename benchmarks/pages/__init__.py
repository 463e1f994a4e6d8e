"""What pages of the docs are made of: rows that are kept, and tables of them."""
