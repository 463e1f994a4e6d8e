"""Several partitioner instances on one stream, slide by slide, while instances or the law of the stream
change.

`instances` runs the processes and the stream. `course` takes a stream through phases and says how level the
loads are. `picture` draws that, and `tables` has its figures over the seeds.
"""
