"""Three ways to schedule a record, with unmodified clients: header, timestamp, recurring."""

import time
from collections.abc import Callable

import pytest

from clients.protocol import WAIT_S, Client, Record

pytestmark = [
    pytest.mark.peer,
    pytest.mark.parametrize("target", ["penstock"], indirect=True),  # Kafka refuses its settings
    pytest.mark.parametrize("client", ["librdkafka", "java", "franz-go", "kafkajs"], indirect=True),
]

WEEK_MS = 7 * 86_400_000


def now_ms() -> int:
    return round(time.time() * 1000)


def header(name: str, value: str) -> tuple[tuple[str, bytes], ...]:
    return ((name, value.encode()),)


def read(
    client: Client, topic: str, is_enough: Callable[[list[bytes | None]], bool]
) -> list[tuple[Record, int]]:
    """Records of a topic with their arrival times, read by a new member of a group."""
    member = client.join(f"group-{topic}-{now_ms()}", topic, isolation="read_committed")
    found: list[tuple[Record, int]] = []
    end_s = time.monotonic() + WAIT_S
    while not is_enough([each.value for each, _ in found]):
        assert time.monotonic() < end_s, found
        found += [(each, now_ms()) for each in member.poll().records]
    member.leave()
    return found


@pytest.mark.row("A120")
def test_records_are_scheduled_by_header_by_timestamp_and_repeatedly(
    client: Client, referee: Client, topic: str
) -> None:
    later, timed, orders = f"{topic}-later", f"{topic}-timed", f"{topic}-orders"
    again, ticks = f"{topic}-again", f"{topic}-ticks"
    for name in (orders, ticks):
        referee.create_topic(name)
    referee.create_topic(later, configs={"penstock.delay.to": orders})
    by_time = {"penstock.delay.to": orders, "penstock.delay.by": "timestamp"}
    referee.create_topic(timed, configs=by_time)
    referee.create_topic(again, configs={"penstock.delay.to": ticks})
    began_ms = now_ms()
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began_ms // 1000 + 2))
    due_ms = {
        b"at": began_ms + 1200,
        b"iso": (began_ms // 1000 + 2) * 1000,
        b"after": began_ms + 800,
        b"timestamp": began_ms + 1000,
    }
    client.produce(again, [Record(b"slow", b"k", header("penstock-schedule", "every 9s"))])
    client.produce(again, [Record(b"tick", b"k", header("penstock-schedule", "every 1s"))])
    client.produce(
        later,
        [
            Record(b"week", b"k", header("penstock-delay-ms", str(WEEK_MS)), partition=0),
            Record(b"at", b"k", header("penstock-deliver-at", str(due_ms[b"at"])), partition=0),
            Record(b"iso", b"k", header("penstock-deliver-at", iso), partition=0),
            Record(b"after", b"k", header("penstock-delay-ms", "800"), partition=0),
        ],
    )
    client.produce(
        timed, [Record(b"timestamp", b"k", timestamp_ms=due_ms[b"timestamp"], partition=0)]
    )
    found = read(client, orders, lambda values: len(values) == 4)
    assert {each.value for each, _ in found} == due_ms.keys()
    for each, at_ms in found:
        assert at_ms >= due_ms[each.value or b""] - 1
        assert (each.key, each.headers) == (b"k", ())

    # The second schedule of a key replaces the first, and a tombstone ends it.
    read(client, ticks, lambda values: b"tick" in values)
    client.produce(again, [Record(None, b"k")])
    ended_ms = now_ms()
    client.produce(again, [Record(b"end", b"k", header("penstock-delay-ms", "2200"))])
    recurring = [each.value for each, _ in read(client, ticks, lambda values: b"end" in values)]
    assert set(recurring) == {b"tick", b"end"}
    assert recurring.count(b"tick") <= (ended_ms - began_ms) // 1000 + 1  # one may be in flight
