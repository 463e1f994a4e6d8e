"""The file of a policy: what is read is what was written, and nothing else is read."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.network import best_action, load_policy, read_policy
from evenflow.partitioners.partly.partly import shipped_policy
from tests.examples import examples
from tests.unit.partitioners.partly.policies import always, random_policy

few = examples(60)


def rewritten(content: bytes, **fields: object) -> bytes:
    """The file with other fields in its header, and a digest that fits."""
    magic, head, rest = content[:-32].split(b"\n", 2)
    header = {**json.loads(head), **fields}
    body = b"\n".join([magic, json.dumps(header).encode(), rest])
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize("data_blocks", [None, 24])
def test_a_policy_comes_back_from_its_file(data_blocks: int | None) -> None:
    policy = always(5, data_blocks=data_blocks) if data_blocks else random_policy(3, keys_each=6)
    again = read_policy(policy.to_bytes())
    assert (again.keys_each, again.data_blocks) == (policy.keys_each, policy.data_blocks)
    for mine, read in zip(policy.layers, again.layers, strict=True):
        np.testing.assert_array_equal(mine, read)


@given(seed=st.integers(0, 50))
@few
def test_the_action_is_that_of_the_layers_multiplied_out(seed: int) -> None:
    policy = random_policy(seed)
    room, layers = policy.room(), policy.layers
    room.observation[:] = np.random.default_rng(seed).random(len(room.observation))
    first = np.maximum(0, room.observation.astype(float) @ layers.first + layers.first_bias)
    second = np.maximum(0, first @ layers.second + layers.second_bias)
    assert best_action(layers, room) == int(np.argmax(second @ layers.last + layers.last_bias))


def test_the_shipped_policy_is_small_and_serves_any_number_of_data_blocks() -> None:
    policy = shipped_policy()
    assert policy.data_blocks is None
    assert len(policy.to_bytes()) < 300_000


@given(cut=st.integers(0, 3000), flip=st.integers(0, 3000))
@few
def test_a_cut_or_damaged_file_is_refused(cut: int, flip: int) -> None:
    content = always(1).to_bytes()
    damaged = bytearray(content)
    damaged[flip % len(content)] ^= 1
    for bad in (content[: min(cut, len(content) - 1)], bytes(damaged)):
        with pytest.raises(ConfigError, match=r"no file of a partly policy|damaged or cut"):
            read_policy(bad)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"version": 2}, "format 2; this evenflow reads format 1"),
        ({"widths": [33, 16, 16, ACTIONS]}, "its widths are"),
        ({"widths": [34, 17, 16, ACTIONS]}, "bytes of weights must follow"),
        ({"widths": "many"}, "header of the partly policy cannot be used"),
        ({"keys_each": 0}, "keys_each"),
        ({"data_blocks": -1}, "data_blocks"),
        ({"version": None}, "version"),
    ],
)
def test_a_forged_header_is_refused(fields: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_policy(rewritten(always(1).to_bytes(), **fields))


def test_weights_that_are_not_finite_are_refused() -> None:
    policy = always(1)
    policy.layers.second[0, 0] = np.nan
    with pytest.raises(ConfigError, match="not finite"):
        read_policy(policy.to_bytes())


def test_a_missing_file_is_named_with_what_to_do(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.evenflow cannot be read(.|\n)*evenflow train partly"):
        load_policy(tmp_path / "gone.evenflow")
