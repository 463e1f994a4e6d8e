"""Metrics of the parts, one module per part. No other package of evenflow knows Prometheus.

`catalogue` has the name, unit and meaning of every metric. `sheet` holds the values of one scrape.
"""
