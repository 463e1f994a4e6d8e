"""Where a query stands, from its topics alone: `evenflow status`.

`read.py` asks Kafka (bounded, makes and joins nothing), `facts.py` says what was found, `judging.py` what is wrong with
it in words, `screen.py` shows it. Only `read.py`, `results.py` and `checkpoint.py` know of anything outside.
"""
