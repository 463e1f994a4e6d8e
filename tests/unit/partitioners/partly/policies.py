"""Policies that nobody has trained."""

import numpy as np

from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.episode import FEATURES
from evenflow.partitioners.partly.network import NetworkLayers, TrainedPolicy


def random_policy(seed: int, *, keys_each: int = 8, width: int = 16) -> TrainedPolicy:
    """Random weights: it decides anything."""
    rng = np.random.default_rng(seed)
    shapes = [(FEATURES, width), (width,), (width, width), (width,), (width, ACTIONS), (ACTIONS,)]
    return TrainedPolicy(
        layers=NetworkLayers(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes)),
        keys_each=keys_each,
        data_blocks=None,
    )


def always(action: int, *, data_blocks: int | None = None) -> TrainedPolicy:
    """It decides for this action always."""
    layers = NetworkLayers(*(array * 0 for array in random_policy(0).layers))
    layers.last_bias[action] = 1
    return TrainedPolicy(layers=layers, keys_each=8, data_blocks=data_blocks)
