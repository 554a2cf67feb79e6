"""Finding the live brokers of a cluster without a client library."""

from peers.probe import live_brokers, parsed_brokers
from peers.process import free_ports


def test_broker_ids_are_read_past_hosts_and_racks() -> None:
    answer = (
        b"\0\0\0\0"  # correlation id
        b"\0\0\0\2"
        b"\0\0\0\7\0\4host\0\0\x23\x84\xff\xff"  # no rack
        b"\0\0\0\x09\0\1h\0\0\x23\x85\0\3one"
        b"\0\0\0\7"  # controller
        b"\0\0\0\0"  # topics
    )
    assert parsed_brokers(answer) == {7, 9}


def test_a_port_without_listener_is_not_alive() -> None:
    assert live_brokers(free_ports(1)[0]) == set()
