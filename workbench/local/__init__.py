"""Programs on this machine: an embedded broker, child processes, Prometheus, free ports, the broker's
archives of classes.

May live here: what starts and stops them. May not: what is known about a query. Called by `demo`, the
benchmarks, the tests and `evenflow broker`.
"""
