"""What is logged without any option."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters
from py4j.protocol import ERROR

from evenflow.commands.logs import configure
from partitioner_service.app import _Consumer, _Reader


@pytest.fixture
def loggers() -> Iterator[None]:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    configure(quiet=False, verbose=False, as_json=False)
    yield
    logging.basicConfig(handlers=before[0], level=before[1], force=True)


@pytest.mark.usefixtures("loggers")
def test_each_later_try_of_a_start_is_heard() -> None:
    assert logging.getLogger("evenflow.start").isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize("kind", [_Consumer, _Reader])
def test_what_faust_says_of_its_consumer_is_not(kind: type) -> None:
    assert not kind.logger.isEnabledFor(logging.WARNING)


@pytest.mark.usefixtures("loggers")
def test_a_java_that_ends_within_a_command_is_told_in_our_words_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as java:
        client = GatewayClient(
            gateway_parameters=GatewayParameters(address="127.0.0.1", port=java.getsockname()[1])
        )
        ended = threading.Thread(target=lambda: java.accept()[0].close())
        ended.start()
        configure(quiet=False, verbose=False, as_json=False)  # to the standard error that is captured
        assert client.send_command("m\nd\no1\ne\n", retry=False) == ERROR
        ended.join()
    assert capsys.readouterr().err == ""
