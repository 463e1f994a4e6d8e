"""Words and how often each occurs."""

from evenflow.queries.builtin import BuiltInQuery

WORDCOUNT = BuiltInQuery(
    name="wordcount",
    what="how often each word occurs, over a minute that slides by 10 s",
    source="made-words",
    data="100,000 words with the frequencies of a text, generated",
    columns=("word", "time"),
    fields={
        "key": "word",
        "time": "time",
        "time_unit": "ms",
        "window": "60s",
        "slide": "10s",
        "aggregates": {"occurrences": "count"},
    },
)
