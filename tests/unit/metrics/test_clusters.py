"""The figures of a micro-batch that are counted from its clusters, against their definitions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import metrics
from evenflow.keys import Buckets, bucket_of
from evenflow.metrics.clusters import clusters_of, summary

N, BUCKETS = 5, 3
TUPLES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, N - 1)), max_size=200)


def columns(tuples: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """(hashes, data blocks) of the tuples. Some hashes share their low bits, some their high bits."""
    some = np.array([0, 1, 2**63, 2**64 - 1, *(i << 40 for i in range(1, 10))], np.uint64)
    return some[[key for key, _ in tuples]], np.array([block for _, block in tuples], np.int32)


@given(TUPLES)
def test_every_tuple_counts_in_the_cluster_of_its_key_and_data_block(tuples: list[tuple[int, int]]) -> None:
    hashes, data_blocks = columns(tuples)
    result = clusters_of(hashes, data_blocks)
    pairs = list(zip(result.keys.tolist(), result.data_blocks.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    expected = Counter(zip(hashes.tolist(), data_blocks.tolist(), strict=True))
    assert dict(zip(pairs, result.sizes.tolist(), strict=True)) == expected


@given(TUPLES)
def test_the_summary_has_the_figures_of_the_definitions(tuples: list[tuple[int, int]]) -> None:
    hashes, data_blocks = columns(tuples)
    result = summary(hashes, data_blocks, workers=N, buckets=Buckets(BUCKETS))
    holders = {key: set(data_blocks[hashes == key].tolist()) for key in hashes.tolist()}
    assert (result.tuples, result.keys) == (len(tuples), len(holders))
    assert result.split.tolist() == sorted(key for key, blocks in holders.items() if len(blocks) > 1)
    if tuples:
        assert result.data_blocks.bsi == pytest.approx(metrics.block_size_imbalance(data_blocks, N))
        assert result.data_blocks.bci == pytest.approx(
            metrics.block_cardinality_imbalance(data_blocks, hashes, N)
        )
        assert result.data_blocks.ksr == pytest.approx(metrics.replication_factor(data_blocks, hashes))
        assert result.data_blocks.mpi == pytest.approx(metrics.micro_batch_index(data_blocks, hashes, N))
        clusters = clusters_of(hashes, data_blocks)
        buckets = bucket_of(clusters.keys, BUCKETS)
        assert result.buckets.bsi == pytest.approx(metrics.block_size_imbalance(buckets, BUCKETS))
        assert result.buckets.bci == pytest.approx(
            metrics.block_cardinality_imbalance(buckets, clusters.keys, BUCKETS)
        )
    else:
        assert result.data_blocks == result.buckets == (0, 0, 0)
