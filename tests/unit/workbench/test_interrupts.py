"""An interrupt that Python drops is not lost."""

from __future__ import annotations

import os
import signal

import pytest

from workbench.demo.interrupts import Interrupts


class Finalised:
    """Is interrupted in its finaliser, from where no exception gets out."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1_000):
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_a_finaliser_is_raised_at_the_next_look() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        thing: Finalised | None = Finalised()
        assert thing is not None
        thing = None
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_sigterm_is_an_interrupt_and_the_former_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), Interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
