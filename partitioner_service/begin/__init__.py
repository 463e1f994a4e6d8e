"""What happens once, before the data plane turns: checks, the claim of a query's beginning, the way back
after a loss.

May live here: whatever decides whether an instance may begin, and where. May not: anything that is called for
each block. Called by `app` and `plane.opening`.
"""
