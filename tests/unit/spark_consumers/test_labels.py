"""Labels against hashes that Spark itself computes (`SELECT hash(n)`): no Spark is started here."""

from __future__ import annotations

import pytest

from spark_consumers.labels import bucket_labels, shuffle_partition

SPARK_SAYS = {0: 933211791, 1: -559580957, 2: 1765031574}


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64, 1_000_003])
def test_an_integer_is_placed_where_sparks_own_hash_places_it(partitions: int) -> None:
    for number, hashed in SPARK_SAYS.items():
        assert shuffle_partition(number, partitions) == hashed % partitions


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 16, 200])
def test_every_bucket_has_a_shuffle_partition_of_its_own_which_its_plain_number_would_not_have(
    buckets: int,
) -> None:
    assert [shuffle_partition(label, buckets) for label in bucket_labels(buckets)] == list(range(buckets))
    plain = {shuffle_partition(number, buckets) for number in range(buckets)}
    assert len(plain) < buckets, "or this test could not tell labels from numbers"
