"""A query's topics and rights as Strimzi's resources, for clusters where an operator makes them.

May live here: what each part may do with Kafka, and manifests of it. May not: talking to Kafka or to
Kubernetes.
"""
