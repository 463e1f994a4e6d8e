"""What a query keeps in Kafka about itself: its record, plans, skips, the audit log,
and which settings it began with.

Called by the services and the commands.
"""
