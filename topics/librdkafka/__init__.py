"""The librdkafka that confluent-kafka has loaded, for compiled code: which versions were proven, how a kernel
calls its functions, and a producer that takes records from arrays.

Admission rule: what knows librdkafka's own functions and structures, and is needed by more than one service.
How the partitioner reads stays with it (`partitioner_service/fetch`).
"""
