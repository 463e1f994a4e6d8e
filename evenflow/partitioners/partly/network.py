"""PartLy's policy network, without torch: plain arrays, their file, and the choice of an action.

Two hidden layers of rectified linear units, then one number for each action. The action with the greatest
number is taken, the lowest among equals. Training draws actions at random by these numbers; a planner does
not.

The file has the line `evenflow-policy`, a line of JSON (the header), the arrays as little-endian float32, and
the SHA-256 of all that. The header has the format's version, the widths of the layers, `keys_each`, and
`data_blocks` (0: any number). Whoever reads a file gets a policy that a kernel may use without checks, or a
ConfigError. (A digest shows damage. It is no signature.)
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.episode import FEATURES, MOST_HEAD, Float32s
from evenflow.text.strict_json import INT64, StrictObject, read_object

VERSION = 1
"""Of the file. It rises when the observation or the actions change, because a policy fits only those it
was trained on.
"""
MOST_DATA_BLOCKS = 1 << 20
MOST_WIDTH = 1024
_MAGIC = b"evenflow-policy\n"
_DIGEST_BYTES = 32
_MOST_HEADER_BYTES = 4096
_TRAIN = "train one with `evenflow train partly`"


class NetworkLayers(NamedTuple):
    """Weights and biases of the three layers. The width of a layer is its number of units.

    The last layer has a unit for each action.
    """

    first: npt.NDArray[np.float32]
    """(features, width of the first layer): weights."""
    first_bias: Float32s
    """(width of the first layer,)."""
    second: npt.NDArray[np.float32]
    """(width of the first layer, width of the second layer): weights."""
    second_bias: Float32s
    """(width of the second layer,)."""
    last: npt.NDArray[np.float32]
    """(width of the second layer, actions): weights."""
    last_bias: Float32s
    """(actions,)."""


class Workspace(NamedTuple):
    """Where the kernel works: an observation, and the output of each layer."""

    observation: Float32s
    """(features,): what the network is asked about."""
    first: Float32s
    """(width of the first layer,): output of the first layer."""
    second: Float32s
    """(width of the second layer,): output of the second layer."""
    last: Float32s
    """(actions,): output of the last layer, the value of each action."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedPolicy:
    """A trained network, and the batches that it is for."""

    layers: NetworkLayers
    """The network's weights and biases."""
    keys_each: int
    """The policy decides about so many keys for each data block, the most frequent ones of the batch."""
    data_blocks: int | None
    """The only number of data blocks that it was trained for. None: it was trained on many, and serves
    any.
    """

    def room(self) -> Workspace:
        """Room to work in, for one planner."""
        first, second, last = self._widths()[1:]
        sizes = (FEATURES, first, second, last)
        return Workspace(*(np.zeros(size, np.float32) for size in sizes))

    def serves(self, data_blocks: int) -> bool:
        """Whether the policy can plan so many data blocks."""
        return self.data_blocks in (None, data_blocks)

    def check_serves(self, data_blocks: int) -> None:
        """ConfigError if the policy was trained for another number of data blocks."""
        if not self.serves(data_blocks):
            raise ConfigError(
                f"the policy was trained for {self.data_blocks} data blocks and cannot plan {data_blocks}",
                hint=(
                    "train one over a range, as `evenflow train partly --data-blocks 2-64` does, or use the"
                    " one that ships with evenflow"
                ),
            )

    def to_bytes(self) -> bytes:
        """The file of this policy. `read_policy` reads it."""
        header = {
            "version": VERSION,
            "widths": self._widths(),
            "keys_each": self.keys_each,
            "data_blocks": self.data_blocks or 0,
        }
        arrays = b"".join(array.astype("<f4").tobytes() for array in self.layers)
        body = _MAGIC + json.dumps(header, sort_keys=True).encode() + b"\n" + arrays
        return body + hashlib.sha256(body).digest()

    def _widths(self) -> list[int]:
        layers = self.layers
        return [layers.first.shape[0], *(len(bias) for bias in layers[1::2])]


def read_policy(content: bytes) -> TrainedPolicy:
    """The policy of a file's content. ConfigError says why the content is none of this version."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if not body.startswith(_MAGIC):
        raise ConfigError("this is no file of a partly policy", hint=_TRAIN)
    if hashlib.sha256(body).digest() != digest:
        raise ConfigError("the file of the partly policy is damaged or cut: its digest is wrong", hint=_TRAIN)
    head, _, arrays = body[len(_MAGIC) :].partition(b"\n")
    try:
        header = read_object(head, most_bytes=_MOST_HEADER_BYTES, depth=2)
        version = header.whole("version", *INT64)
        if version == VERSION:
            return _policy(header, arrays)
    except ValueError as error:
        raise ConfigError(f"the header of the partly policy cannot be used: {error}", hint=_TRAIN) from None
    raise ConfigError(
        f"the policy has format {version}; this evenflow reads format {VERSION}",
        hint=f"{_TRAIN}, or use the evenflow that wrote this one",
    )


def load_policy(path: Path) -> TrainedPolicy:
    """The policy in a file. ConfigError if there is none, or if it cannot be used."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the partly policy {path} cannot be read: {error.strerror}", hint=_TRAIN) from None
    return read_policy(content)


def _policy(header: StrictObject, arrays: bytes) -> TrainedPolicy:
    widths = header.wholes("widths", 1, MOST_WIDTH, most=4)
    data_blocks = header.whole("data_blocks", 0, MOST_DATA_BLOCKS)
    if len(widths) != 4 or (widths[0], widths[3]) != (FEATURES, ACTIONS):
        raise ValueError(f"its widths are {widths}, not {FEATURES}, two others, and {ACTIONS}")
    shapes = [shape for a, b in pairwise(widths) for shape in ((a, b), (b,))]
    sizes = [math.prod(shape) for shape in shapes]
    if len(arrays) != 4 * sum(sizes):
        raise ValueError(f"{4 * sum(sizes)} bytes of weights must follow it, not {len(arrays)}")
    flat = np.frombuffer(arrays, "<f4").astype(np.float32)
    if not np.isfinite(flat).all():
        raise ValueError("some of its weights are not finite")
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    layers = NetworkLayers(*(part.reshape(shape).copy() for part, shape in zip(parts, shapes, strict=True)))
    return TrainedPolicy(
        layers=layers, keys_each=header.whole("keys_each", 1, MOST_HEAD), data_blocks=data_blocks or None
    )


@kernel
def _weighted(inputs: Float32s, weights: npt.NDArray[np.float32], bias: Float32s, out: Float32s) -> None:
    """out = seen * weights + bias, summed in the order of the inputs, so that every machine gets the same."""
    for unit in range(out.shape[0]):
        out[unit] = bias[unit]
    for feature in range(inputs.shape[0]):
        value = inputs[feature]
        if value != np.float32(0.0):  # half of the rectified units are zero
            for unit in range(out.shape[0]):
                out[unit] += value * weights[feature, unit]


@kernel
def _rectified(values: Float32s) -> None:
    for unit in range(values.shape[0]):
        values[unit] = max(np.float32(0.0), values[unit])


@kernel
def best_action(layers: NetworkLayers, room: Workspace) -> np.int64:
    """The action for the observation in `room.observation`."""
    _weighted(room.observation, layers.first, layers.first_bias, room.first)
    _rectified(room.first)
    _weighted(room.first, layers.second, layers.second_bias, room.second)
    _rectified(room.second)
    _weighted(room.second, layers.last, layers.last_bias, room.last)
    best: Whole = np.int64(0)
    for action in range(1, room.last.shape[0]):
        if room.last[action] > room.last[best]:
            best = np.int64(action)
    return np.int64(best)
