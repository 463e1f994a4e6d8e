"""What a person needs on one machine: broker, child processes, demo, verify, doctor, a look, status, reset, rename.

May live here: whatever starts, stops, checks or explains the services on this machine. May not: algorithms
(`evenflow/`), or anything that a service needs in production. Called by `cli/` and the tests.
"""
