"""Ports that tests and demos are given."""

from __future__ import annotations

from workbench.local import ports


def test_no_socket_that_asks_for_any_port_is_given_one_of_ours() -> None:
    result = ports.free_ports(20)
    assert len(set(result)) == 20
    above = ports._first_ephemeral()
    assert above > 0, "this is Linux"
    assert all(1_024 <= port < above for port in result)
