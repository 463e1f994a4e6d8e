"""The words that occur most, by their first letter."""

from evenflow.queries.builtin import BuiltInQuery

TOP_WORDS = BuiltInQuery(
    name="top-words",
    what="the ten commonest words by first letter, over a minute that slides by 10 s",
    source="made-words",
    data="100,000 words with the frequencies of a text, generated",
    columns=("word", "time"),
    fields={
        "key": "letter",
        "time": "time",
        "time_unit": "ms",
        "window": "60s",
        "slide": "10s",
        "columns": {"letter": "left(word, 1)"},
        "aggregates": {"top": "top_k(word, 10)"},
        "types": {"word": "string"},
    },
)
