"""The Spark jobs: combiner and reducer, as thin shells around the pure cores in `evenflow.twostep`.

Admission rule: code that must know Spark, and no code that decides a result. The command line calls
`application.run`, which starts a `stage` for each streaming query. `combiner`, `reduce_tasks` and `reducer`
are what the queries do.

| folder | what may live there |
|---|---|
| `workers` | how Spark's Python workers begin, and how their tallies come back |
| `reports` | what the application says about itself |
| `sinks` | where results go, one kind in each file |
| `cluster` | where the application runs, and its executors |
| `checkpoints` | whose a checkpoint is, and that no two drivers write one place |
| `jars` | jars, fetched once and compared with their SHA-256 |
"""
