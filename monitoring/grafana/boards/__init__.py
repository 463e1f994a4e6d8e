"""The dashboards, a module each: what a person asks, and which panels answer it."""

from monitoring.grafana.boards import elasticity, faults, overview, skew, spark_stages

BOARDS = {
    "overview": overview.build,
    "skew": skew.build,
    "elasticity": elasticity.build,
    "spark-stages": spark_stages.build,
    "faults": faults.build,
}
"""By file name."""
