"""Sources replayed into the input topic. `producers.replay.replay` sends a source.

Admission rule: code that turns a source (`evenflow.sources`) into records of the user's own format, decides
when each record is due, and delivers it. It uses `topics` and `evenflow`, and knows no other service.
"""
