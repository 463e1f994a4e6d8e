"""A pipeline as queues: loads that arrive, operators, their graph, rewards,
and Gymnasium environments over them.
"""
