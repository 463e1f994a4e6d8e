"""A model of Kafka: a broker in memory, and clients with the part of confluent-kafka's interface that
evenflow uses.
"""
