"""Sources replayed into the input topic.

Admission rule: what turns a source (`evenflow.sources`) into records of the user's own format, decides when each
is due, and delivers it. Uses `topics` and `evenflow`. Knows no other service. `producers.replay.replay` sends a source.
"""
