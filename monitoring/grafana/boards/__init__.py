"""The dashboards, one module each. The docstring of a module is the question that its panels answer."""

from monitoring.grafana.boards import elasticity, faults, overview, skew, spark_stages

BOARDS = {
    "overview": overview.build,
    "skew": skew.build,
    "elasticity": elasticity.build,
    "spark-stages": spark_stages.build,
    "faults": faults.build,
}
"""Name of the file, without its ending -> function that makes the dashboard."""
