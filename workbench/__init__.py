"""What a person needs on one machine: broker, child processes, demo, verify, doctor, a sample check,
status, reset, rename.

May live here: whatever starts, stops, checks or explains the services on this machine. May not: algorithms
(`evenflow/`), or anything that a service needs in production. Called by `cli/` and the tests.

| folder | what may live there |
|---|---|
| `local` | programs on this machine: broker, child processes, Prometheus |
| `demo`, `elastic` | a whole pipeline, once and in a closed loop |
| `verify` | the results again, by other means |
| `doctor`, `sample_check`, `status` | what is wrong on the machine, with the records, with a running query |
| `lifetime` | a query's end: reset, rename, skip |
| `registered` | Avro and Protobuf records, read with other code than the partitioner's |
| `strimzi` | a query's topics and rights for an operator |
"""
