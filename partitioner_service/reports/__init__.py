"""What an instance says about itself: telemetry, status, log lines, health, the rejected records by reason.

May live here: what people and the controller read. May not: anything on which a result depends. Called by
`plane`, `web`.
"""
