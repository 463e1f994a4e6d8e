"""Elasticity: how many workers and reducers a pipeline should have, decided from its own measurements.

Admission rule: pure policies (observation in, decision out), the queue models that they compute with, and the
environments in which policies are tried and trained. Nothing here uses Kafka or reads a clock. So the same
policy object runs in the simulator, in the controller and in tests.

>>> from evenflow import elasticity
>>> policy = elasticity.create("fixed", bounds=elasticity.Bounds(p_max=8, r_max=4))
>>> observation = elasticity.Observation(step=1, interval_ms=5000, p=2, r=1, load=0.97)
>>> policy.decide(observation).p
2
"""

from evenflow.elasticity.observation import Observation, StageObservation
from evenflow.elasticity.policy import CAUSES, Bounds, Cause, Decision, Policy
from evenflow.elasticity.registry import PolicyDescription, create, describe, names, options_type, restore
from evenflow.text.options import Options

__all__ = [
    "CAUSES",
    "Bounds",
    "Cause",
    "Decision",
    "Observation",
    "Options",
    "Policy",
    "PolicyDescription",
    "StageObservation",
    "create",
    "describe",
    "names",
    "options_type",
    "restore",
]
