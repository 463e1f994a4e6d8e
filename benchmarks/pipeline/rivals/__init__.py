"""Other systems that do the job of our benchmarks. They run beside evenflow on the same broker and topic.

A program here runs as a process of its own, in an environment of its own. So it imports nothing of evenflow.
It takes its input as words and prints one JSON object with the seconds of the job.
"""
