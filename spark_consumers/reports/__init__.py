"""What the Spark application says about itself: telemetry, log lines, health, failures in words for a person.

May live here: what people and the controller read. May not: anything on which a result depends. Called by
`application` and `stage`.
"""
