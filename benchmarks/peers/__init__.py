"""Other systems that do the job of our benchmarks, run beside evenflow on the same broker and topic.

A program here runs as a process of its own, in its own environment, and so imports nothing of ours: it takes its
input as words and prints one JSON object with the seconds of the job.
"""
