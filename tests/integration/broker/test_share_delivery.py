"""Features of share groups beyond Kafka: back-off, key order, pause and circuit breaker."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from penstock.record.compression import Codec
from penstock.testing.broker import EmbeddedBroker
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    RELEASE,
    ShareMember,
    configure_group,
    make_topic,
    produce_keys,
    produce_records,
)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.min.record.lock.duration.ms": "1000",
}


EARLY_S, LATE_S = 0.002, 2.0
"""A record never comes early, except for the rounding of milliseconds. How late it comes depends on
the machine: `bench share` measures that.
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


class Stage:
    """A group with these settings, and a topic with records of these keys."""

    def __init__(self, broker: EmbeddedBroker, name: str, keys: str, **settings: str) -> None:
        self._broker, self.name, self._stack = broker, name, ExitStack()
        self.link = self._stack.enter_context(WireLink(broker.bootstrap))
        make_topic(self.link, name)
        settings["share.auto.offset.reset"] = "earliest"
        configure_group(self.link, name, settings)
        produce_keys(self.link, name, [each.encode() for each in keys])

    def member(self, name: str) -> ShareMember:
        member = ShareMember(self._broker.bootstrap, self.name, name, self.name)
        self._stack.callback(member.close)
        member.join()
        return member

    def set(self, **settings: str) -> None:
        configure_group(self.link, self.name, {_setting(k): v for k, v in settings.items()})

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _setting(name: str) -> str:
    return "penstock.share." + name.replace("_", ".")


def staged(broker: EmbeddedBroker, name: str, keys: str, **settings: str) -> Stage:
    return Stage(broker, name, keys, **{_setting(k): v for k, v in settings.items()})


def test_a_released_record_is_invisible_for_one_second_then_for_two(broker: EmbeddedBroker) -> None:
    with staged(broker, "backoff", "abc", redelivery_backoff_ms="1000") as stage:
        a, b = stage.member("a"), stage.member("b")
        assert a.acquired() == [(0, 2, 1)]
        for delivery, pause in ((2, 1.0), (3, 2.0)):
            began = time.monotonic()
            a.acknowledge((1, 1, RELEASE))
            assert b.acquired(wait_ms=200) == []
            assert b.acquired(wait_ms=20_000) == [(1, 1, delivery)]
            waited = time.monotonic() - began
            assert pause - EARLY_S <= waited < pause + LATE_S
            b.acknowledge((1, 1, RELEASE)) if delivery == 3 else None
            a, b = b, a


def test_a_record_whose_lock_expires_is_also_invisible_for_a_second(broker: EmbeddedBroker) -> None:
    with staged(broker, "locks", "abc", redelivery_backoff_ms="1000") as stage:
        configure_group(stage.link, "locks", {"share.record.lock.duration.ms": "1000"})
        a, b = stage.member("a"), stage.member("b")
        began = time.monotonic()
        assert a.acquired() == [(0, 2, 1)]
        assert b.acquired(wait_ms=20_000) == [(0, 2, 2)]
        waited = time.monotonic() - began
        assert 2 - EARLY_S <= waited < 2 + LATE_S, "a lock of a second, then the back-off"


def test_records_with_one_key_are_delivered_one_after_another(broker: EmbeddedBroker) -> None:
    with staged(broker, "keys", "abacba", key_order="true") as stage:
        a, b = stage.member("a"), stage.member("b")
        assert a.acquired() == [(0, 1, 1), (3, 3, 1)]
        assert b.acquired() == []
        a.acknowledge((0, 0, ACCEPT))
        assert b.acquired(wait_ms=10_000) == [(2, 2, 1)]
        a.acknowledge((1, 1, RELEASE))
        assert a.acquired(wait_ms=10_000) == [(1, 1, 2)]
        a.acknowledge((1, 1, ACCEPT))
        b.acknowledge((2, 2, ACCEPT))
        assert a.acquired(wait_ms=10_000) == [(4, 5, 1)]


def test_key_order_holds_in_large_batches(broker: EmbeddedBroker) -> None:
    with staged(broker, "large", "ab", key_order="true") as stage:
        zeros = bytes(3 << 20)
        for keys in (b"ca", b"dc"):
            pairs = [(bytes([each]), zeros) for each in keys]
            produce_records(stage.link, stage.name, pairs, codec=Codec.GZIP)
        a = stage.member("a")
        assert a.acquired(wait_ms=10_000) == [(0, 1, 1)]
        assert a.acquired(wait_ms=10_000) == [(2, 2, 1)]
        assert a.acquired(wait_ms=10_000) == [(4, 4, 1)]
        a.acknowledge((0, 0, ACCEPT))
        assert a.acquired(wait_ms=10_000) == [(3, 3, 1)]
        a.acknowledge((2, 2, ACCEPT))
        assert a.acquired(wait_ms=10_000) == [(5, 5, 1)]


def test_two_hundred_members_never_hold_two_records_of_a_key(broker: EmbeddedBroker) -> None:
    keys = "".join(chr(ord("a") + n % 20) for n in range(200))
    with staged(broker, "many", keys, key_order="true") as stage:
        members = deque(stage.member(f"m{n}") for n in range(200))
        done: list[int] = []
        while len(done) < len(keys):
            held: dict[int, ShareMember] = {}
            for member in members:
                for first, last, _ in member.acquired(most=1, share_acquire_mode=1):
                    assert first == last
                    assert keys[first] not in {keys[each] for each in held}
                    held[first] = member
            assert len(held) == 20
            for offset, member in held.items():
                member.acknowledge((offset, offset, ACCEPT))
                done.append(offset)
            members.rotate(20)
        assert all(
            [o for o in done if keys[o] == key] == [o for o in range(len(keys)) if keys[o] == key]
            for key in set(keys)
        )


def test_a_paused_group_gets_nothing_until_it_resumes(broker: EmbeddedBroker) -> None:
    with staged(broker, "paused", "ab", pause="true") as stage:
        a = stage.member("a")
        assert a.acquired(wait_ms=300) == []
        stage.set(pause="false")
        assert a.acquired(wait_ms=10_000) == [(0, 1, 1)]


def test_when_everything_fails_one_record_is_tried_after_a_pause(broker: EmbeddedBroker) -> None:
    with staged(broker, "fails", "abcd", breaker_failures="4", breaker_pause_ms="700") as stage:
        a = stage.member("a")
        assert a.acquired() == [(0, 3, 1)]
        began = time.monotonic()
        a.acknowledge((0, 3, RELEASE))
        assert a.acquired(wait_ms=10_000) == [(0, 0, 2)]
        assert time.monotonic() - began >= 0.65
        assert a.acquired(wait_ms=100) == []
        a.acknowledge((0, 0, ACCEPT))
        assert a.acquired(wait_ms=10_000) == [(1, 3, 2)]
