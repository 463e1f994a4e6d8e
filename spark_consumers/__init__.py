"""The Spark jobs: combiner and reducer, as thin shells around the pure cores in `evenflow.twostep`.

Admission rule: what must know Spark, and nothing that decides a result. Imports `topics` and `evenflow`
only. `application.run` is what the command line calls. `jars` resolves the jars of the embedded broker too.
"""
