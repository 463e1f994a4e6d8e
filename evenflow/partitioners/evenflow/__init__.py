"""The partitioner `evenflow`: priced water-filling (docs/evenflow-partitioner.md)."""
