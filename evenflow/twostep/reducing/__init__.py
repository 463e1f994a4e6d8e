"""The reducer's core: blobs of one bucket in, rows of the windows that they close out,
and the state in between.

`reducer` is the entry. May live here: what happens to partials after the shuffle. May not: Spark, Kafka.
Called by `evenflow.twostep`.
"""
