"""What a release wrote, kept, and that today's services go on from it.

`releases/VERSION.tar.xz` holds what an operator would back up: the folder of a broker with all topics,
offsets and transactions, the folder of the checkpoints, and the settings of each query. `python -m
tests.pipeline.upgrade` writes it, once for each release, with the code of that release. `test_upgrade`
restores it elsewhere and goes on.
"""
