from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.partials.clustering import improved, objective, vote
from evenflow.aggregates.partials.similarity import similarities
from evenflow.settings import Query
from tests.examples import examples

PLAN = AggregatePlan.of(Query(aggregates={"c": "clusters(s)"}, types={"s": "string"}))
TEXTS = st.lists(st.text("abc", max_size=6), max_size=12)


def clusters(*parts: list[str]) -> list[list[str]] | None:
    """Of these partials merged; each text as often as it was there."""
    tables = []
    for part in parts:
        rows = {"pane": [0] * len(part), "key": pa.array([b""] * len(part), pa.binary())}
        tables.append(pa.table(rows | {"v:s": pa.array(part, pa.string())}))
    result = PLAN.finish(PLAN.merge([PLAN.combine(table) for table in tables]))["c"].to_pylist()
    if not result:
        return None
    return [sorted(one["value"] for one in cluster for _ in range(one["count"])) for cluster in result[0]]


def test_misspelled_names_come_together_and_others_stay_apart() -> None:
    first, second = ["Berlin", "Paris", "Berlin"], ["Berlim", "Parris", "Rome", "Berlyn"]
    assert clusters(first, second) == [
        ["Berlim", "Berlin", "Berlin", "Berlyn"],
        ["Paris", "Parris"],
        ["Rome"],
    ]


def test_two_texts_come_together_where_they_are_more_than_half_alike() -> None:
    assert clusters(["aabb"], ["aaab"]) == [["aaab", "aabb"]]
    assert clusters(["aabb"], ["aacc"]) == [["aabb"], ["aacc"]]


def test_similarity_is_one_less_the_share_of_bytes_that_differ() -> None:
    result = similarities(pa.array(["", "abc", "abd", "\u00e9", ""], pa.large_string()))
    assert result[0, 4] == result[1, 1] == 1
    assert result[0, 1] == 0
    assert result[1, 2] == result[2, 1] == 1 - 1 / 3
    assert similarities(pa.array(["k" * 5_000, "k" * 4_999 + "l"], pa.large_string()))[0, 1] == 1 - 1 / 5_000


@examples(60)
@given(texts=TEXTS, data=st.data())
def test_no_step_lowers_the_objective_and_none_is_left_that_raises_it(
    texts: list[str], data: st.DataObject
) -> None:
    weights = 2 * similarities(pa.array(texts, pa.large_string())) - 1
    np.fill_diagonal(weights, 0)
    begun = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(texts), max_size=len(texts))), np.int64
    )
    for labels in (begun, vote(weights)):
        better = improved(weights, labels.copy())
        assert objective(weights, better) >= max(0.0, objective(weights, labels)) - 1e-9
        assert (improved(weights, better.copy()) == better).all()


@examples(60)
@given(texts=TEXTS)
@example(texts=["aa", "aaba", "aba", "abbab", "bbbaa"])
def test_no_text_would_be_better_off_elsewhere_also_where_one_combiner_had_them_all(texts: list[str]) -> None:
    result = clusters(texts) or []
    different = sorted(set(texts))
    weights = 2 * similarities(pa.array(different, pa.large_string())) - 1
    weights *= np.outer(*[[texts.count(text) for text in different]] * 2)
    np.fill_diagonal(weights, 0)
    which = {text: number for number, cluster in enumerate(result) for text in cluster}
    labels = np.array([which[text] for text in different], np.int64)
    assert objective(weights, improved(weights, labels.copy())) <= objective(weights, labels) + 1e-9


@examples(60)
@given(one=TEXTS, other=TEXTS)
def test_no_text_is_lost_and_equal_ones_are_in_one_cluster(one: list[str], other: list[str]) -> None:
    result = clusters(one, other) or []
    assert sorted(text for cluster in result for text in cluster) == sorted([*one, *other])
    assert sum(len(set(cluster)) for cluster in result) == len({*one, *other})
