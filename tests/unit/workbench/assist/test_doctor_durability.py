"""What the doctor says of topics that lose acknowledged records easily."""

from __future__ import annotations

from topics.state import TopicState
from workbench.assist.doctor.durability import check_durability


def topic(name: str, replicas: int, **config: str) -> TopicState:
    plain = {key.replace("_", "."): value for key, value in config.items()}
    return TopicState(name, "id", 1, {0: 0}, {0: 0}, plain, replicas)


SAFE = {"min_insync_replicas": "2", "unclean_leader_election_enable": "false"}


def test_a_topic_of_one_replica_is_a_warning_that_says_what_a_lost_disk_means() -> None:
    (finding,) = check_durability([topic("q.routed", 1, **SAFE), topic("q.results", 3, **SAFE)])
    assert finding.status == "warning"
    assert finding.what.startswith("q.routed has one replica: if a broker loses its disk")
    assert "kafka.replication_factor = 3" in finding.do


def test_three_replicas_of_which_one_is_enough_for_a_write_are_a_warning() -> None:
    (finding,) = check_durability([topic("q.routed", 3, **SAFE | {"min_insync_replicas": "1"})])
    assert "min.insync.replicas=1" in finding.what
    assert "min.insync.replicas=2" in finding.do


def test_two_replicas_are_a_warning_whatever_number_a_write_needs() -> None:
    (finding,) = check_durability([topic("q.routed", 2, **SAFE)])
    assert "two replicas" in finding.what
    result = list(check_durability([topic("q.routed", 2, **SAFE | {"min_insync_replicas": "1"})]))
    assert [one.status for one in result] == ["warning", "warning"]


def test_an_unclean_election_is_a_warning() -> None:
    unclean = SAFE | {"unclean_leader_election_enable": "true"}
    names = ["a", "b", "c", "d", "e", "f"]
    (finding,) = check_durability([topic(name, 3, **unclean) for name in names])
    assert finding.what.startswith("a, b, c, d and 2 more have unclean.leader.election.enable=true")


def test_topics_that_survive_a_lost_disk_are_fine_and_what_is_not_told_is_passed_over() -> None:
    (finding,) = check_durability([topic("q.routed", 3, **SAFE), topic("q.results", 3), topic("x", 0)])
    assert (finding.status, finding.what) == ("ok", "2 topics survive the loss of a broker's disk")
    assert list(check_durability([topic("x", 0)])) == []
