"""Google's cluster, query 1 of 004: the CPU that each scheduling class asks for."""

from evenflow.queries.builtin import BuiltInQuery

GCM_Q1 = BuiltInQuery(
    name="gcm-q1",
    what="CPU requested by each scheduling class, over a minute that slides by a second",
    source="cluster-tasks",
    data="50,000 task events in the format of Google's cluster trace, generated",
    columns=("scheduling_class", "time", "cpu_request"),
    fields={
        "key": "scheduling_class",
        "time": "time",
        "time_unit": "us",
        "window": "60s",
        "slide": "1s",
        "aggregates": {"tasks": "count", "cpu": "sum(cpu_request)"},
    },
)
