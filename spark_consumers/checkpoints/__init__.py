"""What a stage writes beside Spark's own checkpoint: whose it is, its epoch, the folders of its runs.

May live here: whatever keeps two drivers or two queries from writing the same place. May not: results. Called
by `stage`, `admission` and the sinks that write files.
"""
