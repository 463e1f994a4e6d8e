"""What a process knows of where it runs: signals, worker processes, pods,
and the services beside the library.
"""
