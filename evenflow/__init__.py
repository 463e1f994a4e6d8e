"""The library: everything algorithmic, useful without Kafka, Faust, Spark or Prometheus.

Admission rule: pure objects and functions over numpy and Arrow. Nothing in here opens a socket, reads a clock
or starts a thread. The services in the folders beside this package call it.
"""

__version__ = "0.1.0"
