"""The Spark jobs: combiner and reducer, as thin shells around the pure cores in `evenflow.twostep`.

Admission rule: code that must know Spark, and no code that decides a result. The command line calls
`application.run`.
"""
