"""What every room that touches Kafka shares: client settings, creating and checking topics, bounded reads.

May live here: thin, typed steps over confluent-kafka. May not: parsing, routing, or any knowledge of what a
record means. Imports only `evenflow`, confluent-kafka and pyarrow.
"""
