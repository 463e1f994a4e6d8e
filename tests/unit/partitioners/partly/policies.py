"""Policies that nobody has trained."""

import numpy as np

from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.episode import FEATURES
from evenflow.partitioners.partly.network import Layers, Policy


def random_policy(seed: int, *, keys_each: int = 8, width: int = 16) -> Policy:
    """Random weights: it decides anything."""
    rng = np.random.default_rng(seed)
    shapes = [(FEATURES, width), (width,), (width, width), (width,), (width, ACTIONS), (ACTIONS,)]
    return Policy(
        layers=Layers(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes)),
        keys_each=keys_each,
        data_blocks=None,
    )


def always(action: int, *, data_blocks: int | None = None) -> Policy:
    """It decides for this action always."""
    layers = Layers(*(array * 0 for array in random_policy(0).layers))
    layers.last_bias[action] = 1
    return Policy(layers=layers, keys_each=8, data_blocks=data_blocks)
