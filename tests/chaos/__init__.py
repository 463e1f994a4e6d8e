"""Chaos: the real processes of a pipeline under real faults, by schedules that a seed draws.

`make test-chaos FLAGS="--seed N --minutes M"` plays rounds until the time is up. A round is a pipeline of its
own: a broker, a proxy in front of it, partitioner instances, Spark drivers and a stream that goes on. Strikes
hit them while a supervisor starts again what has ended, as Kubernetes would. When the faults are over, the
results have to be exactly those of brute force over the records as they were written, and nothing may be left
running.

`course` draws what happens, `strikes` does it, `world` is the pipeline, `rounds` plays a course and judges
it. The same seed draws the same course. What it meets depends on the machine's timing, so a seed is no exact
replay.
"""
