"""Whether what was rejected, lost or skipped had to be, and whether the counters add up.

Called by the core of verify.
"""
