"""Blocks of Avro and Protobuf records in Confluent's wire format, with schemas that a registry knows.

Schemas are compiled to steps (`avro_schema`, `protobuf_schema`), and a compiled pass follows them
(`avro_scan`, `protobuf_scan`). Called by `columns`, `parse` and, for the schemas, by whoever opens a
registry.
"""
