"""Where a query stands, from its topics alone: `evenflow status`.

`read.py` asks Kafka: its reads are bounded, and it makes and joins nothing. `facts.py` holds what was found.
`judging.py` says in words what is wrong. `screen.py` shows it. `answer.py` asks first whether a broker
answers. Only it, `read.py`, `results.py` and `checkpoint.py` know of anything outside.
"""
