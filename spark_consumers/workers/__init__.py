"""Python workers of Spark: how they begin, and how their tallies come back to the driver.

`worker_python` is the interpreter that Spark starts for them on one machine. Called by Spark, and by
`session`.
"""
