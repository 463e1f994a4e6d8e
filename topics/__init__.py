"""What every package that touches Kafka shares: client settings, creating and checking topics, bounded reads.

Thin, typed steps over confluent-kafka may live here. Parsing and routing may not, nor anything that knows
what a tuple means. This package imports only `evenflow`, confluent-kafka and pyarrow.
"""
