"""Schema registries: the schemas of the input, and the schema of Avro results."""
