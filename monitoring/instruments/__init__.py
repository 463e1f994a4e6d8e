"""Metrics of the parts: one module each, and nothing else knows Prometheus.

`catalogue` has every metric's name, unit and meaning. `sheet` is what one scrape says.
"""
