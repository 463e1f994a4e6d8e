"""Questions about keys: bounded, answered one at a time, and never the end of the data plane."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.errors import ServiceError
from partitioner_service.plane.questions import Questions


def echo(key: bytes) -> dict[str, Any]:
    return {"key": key.decode()}


def test_a_question_waits_for_the_data_plane_and_gets_its_answer() -> None:
    questions = Questions()
    answer = questions.ask(b"a")
    assert not answer.done()
    questions.answer_one(echo)
    assert answer.result(0) == {"key": "a"}


def test_one_question_is_answered_at_a_time_the_oldest_first() -> None:
    questions = Questions()
    first, second = questions.ask(b"a"), questions.ask(b"b")
    questions.answer_one(echo)
    assert (first.done(), second.done()) == (True, False)
    questions.answer_one(echo)
    assert second.result(0) == {"key": "b"}
    questions.answer_one(echo)


def test_more_questions_than_there_is_room_for_are_refused() -> None:
    questions = Questions(most=2)
    waiting = [questions.ask(b"a"), questions.ask(b"b")]
    with pytest.raises(ServiceError, match="2 questions") as refused:
        questions.ask(b"c")
    assert refused.value.hint
    questions.answer_one(echo)
    assert questions.ask(b"d")
    assert waiting[0].done()


def test_a_question_that_nobody_waits_for_is_passed_over() -> None:
    questions, asked = Questions(), []
    left, waiting = questions.ask(b"a"), questions.ask(b"b")
    assert left.cancel()
    questions.answer_one(lambda key: asked.append(key) or echo(key))
    assert asked == [b"b"]
    assert waiting.done()


def test_a_question_that_fails_harms_only_who_has_asked() -> None:
    questions = Questions()
    answer = questions.ask(b"a")
    questions.answer_one(lambda key: 1 // 0)  # type: ignore[arg-type, return-value]
    assert isinstance(answer.exception(0), ZeroDivisionError)
