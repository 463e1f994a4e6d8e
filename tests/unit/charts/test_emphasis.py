"""Who stands out: evenflow, a few named, the best; all others are grey."""

from evenflow.charts.emphasis import FEW, best, grey_first, looks
from evenflow.charts.looks import HERO, NAMED, REST, SUBJECT
from evenflow.partitioners import names


def test_of_many_only_evenflow_and_the_named_stand_out() -> None:
    result = looks(names(), named=["hashing", "shuffle", "not there"])
    assert result["evenflow"] == HERO
    assert (result["hashing"], result["shuffle"]) == NAMED[:2]
    assert {name for name in result if result[name] != REST} == {"evenflow", "hashing", "shuffle"}
    assert not REST.labelled


def test_of_few_all_are_named() -> None:
    few = [f"rule{at}" for at in range(FEW)]
    assert all(look.labelled for look in looks(few).values())
    assert looks([*few, "one more"])["rule0"] == REST


def test_one_mark_is_strong_evenflow_before_its_variants() -> None:
    result = looks(["evenflow:price=1", "evenflow", "pkg"])
    assert [name for name, look in result.items() if look.bold] == ["evenflow"]
    result = looks(["pkg", "evenflow:price=1", "evenflow:price=2"])
    assert [name for name, look in result.items() if look.bold] == ["evenflow:price=1"]


def test_orange_is_evenflow_even_where_a_picture_is_about_another() -> None:
    assert looks(["prompt", "evenflow"], hero="prompt")["prompt"] == SUBJECT != HERO


def test_no_other_strong_mark_is_as_large_or_as_bright() -> None:
    assert all(HERO.point > look.point and HERO.line > look.line and not look.bold for look in (*NAMED, REST))


def test_the_best_are_those_that_no_other_beats_in_both_figures() -> None:
    points = {
        "hashing": (1.0, 0.4),
        "cam": (1.0, 0.3),
        "ours": (1.1, 0.01),
        "worse": (1.2, 0.02),
        "shuffle": (4.0, 0.0),
    }
    assert best(points) == ["cam", "ours", "shuffle"]
    assert best({"a": (1.0, 0.0), "b": (1.0, 0.0)}) == ["a"]


def test_strong_marks_are_drawn_last() -> None:
    order = grey_first(looks(names(), named=["hashing", "shuffle"]))
    assert order[-3:] == ["shuffle", "hashing", "evenflow"]
    assert sorted(order) == sorted(names())
