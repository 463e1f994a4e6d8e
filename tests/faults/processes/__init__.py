"""The processes of a run in virtual time, and what stands in the place of clients, clocks and files."""
