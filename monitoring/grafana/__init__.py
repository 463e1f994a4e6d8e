"""Grafana dashboards as code.

`python -m monitoring.grafana` writes `dashboards/*.json`, which are committed.
"""
