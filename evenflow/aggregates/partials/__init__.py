"""What partial columns of several aggregates have in common: lists, multisets, registers, moments, order.

Called by the aggregates in `kinds`, and by the plan.
"""
