"""Google's cluster, query 2 of 004: the mean CPU that the tasks of each job ask for."""

from evenflow.queries.builtin import BuiltInQuery

GCM_Q2 = BuiltInQuery(
    name="gcm-q2",
    what="mean CPU requested in each job, over 45 minutes that slide by a second",
    source="cluster-tasks:tuples=20000",
    data="20,000 task events of 100 jobs in the format of Google's cluster trace, generated",
    columns=("job_id", "time", "cpu_request"),
    fields={
        "key": "job_id",
        "time": "time",
        "time_unit": "us",
        "window": "45m",
        "slide": "1s",
        "aggregates": {"tasks": "count", "mean_cpu": "mean(cpu_request)"},
    },
)
