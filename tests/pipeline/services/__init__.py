"""The services as processes: how they begin, wait, stop, and the whole pipeline of them; broker, topics,
replays.
"""
