"""Bounded summaries of a stream: frequencies, window loads.

Admission rule: state is numpy arrays in a NamedTuple that kernels take as one argument; each sketch has
its error bound in its docstring and in a test.
"""
