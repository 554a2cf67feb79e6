"""The memory of large requests is shared by all connections."""

from penstock.broker.net.request_memory import RequestMemory, request_memory


def test_requests_are_let_in_while_a_byte_is_left() -> None:
    memory, woken = RequestMemory(100), []
    assert memory.reserve(99, lambda: None)
    assert memory.reserve(1000, lambda: None)  # as in Kafka, one request may exceed the limit
    assert not memory.reserve(1, lambda: woken.append("first"))
    assert memory.has_waiting
    memory.release(99)
    assert woken == []
    memory.release(1000)
    assert (woken, memory.has_waiting, memory.used_bytes) == (["first"], False, 0)


def test_a_closed_connection_is_not_woken() -> None:
    memory, woken = RequestMemory(1), []

    def on_room() -> None:
        woken.append(1)

    assert memory.reserve(5, on_room)
    assert not memory.reserve(5, on_room)
    memory.forget(on_room)
    memory.release(5)
    assert woken == []


def test_by_default_it_is_a_share_of_the_machines_memory() -> None:
    assert request_memory(1000).limit_bytes == 1000
    assert 1 << 24 < request_memory(-1).limit_bytes < 1 << 50
