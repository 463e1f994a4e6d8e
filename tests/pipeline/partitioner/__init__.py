"""The partitioner service on a real broker: what it reads, routes, refuses and survives."""
