"""Where an application runs, and how it gets executors from its cluster manager as the plan asks.

Called by `application` and `session`. On Kubernetes an executor's pod begins with `executor_pod`.
"""
