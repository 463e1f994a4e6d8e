"""Policies' learners: LinUCB, the agents of MBLinUCB,
and their training on simulated queues before they decide.
"""
