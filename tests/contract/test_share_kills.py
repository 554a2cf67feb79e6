"""Kill -9 of a broker while a member rejects records: each record gets exactly one dead letter."""

import random
import struct
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, TopicPartition

from peers.penstock import PenstockBroker
from peers.process import wait_until
from penstock.errors import ProtocolError
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    REJECT,
    ShareMember,
    configure_group,
    make_topic,
    produce_keys,
)

QUEUE, LETTERS = "kills", "dlq.kills"
EACH, BATCH, TAKEN = 200, 50, 5
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
OPTIONS = [each for name, text in SETTINGS.items() for each in ("--set", f"{name}={text}")]
GROUP = {
    "share.auto.offset.reset": "earliest",
    "errors.deadletterqueue.topic.name": LETTERS,
    "errors.deadletterqueue.copy.record.enable": "true",
}
LIMIT_S = 90.0


def joined(bootstrap: str, name: str) -> ShareMember:
    member = ShareMember(bootstrap, QUEUE, name, QUEUE)
    wait_until(lambda: member.join().error_code == 0, LIMIT_S, "the group")
    return member


def rejecting(member: ShareMember) -> bool:
    """Fetches once and rejects what it acquired."""
    taken = member.acquired(most=TAKEN, wait_ms=50, share_acquire_mode=1)
    for first, last, _ in taken:
        member.acknowledge((first, last, REJECT))
    return bool(taken)


def until_killed(broker: PenstockBroker, name: str, batches: int) -> None:
    """Rejects records; after `batches` batches the broker is killed while it handles the next."""
    member, is_due = joined(broker.bootstrap, name), threading.Event()

    def kill() -> None:
        is_due.wait(LIMIT_S)
        broker.kill(0)

    killer = threading.Thread(target=kill)
    killer.start()
    done, until = 0, time.monotonic() + LIMIT_S
    with suppress(OSError, struct.error, ProtocolError):  # the connection ends
        while time.monotonic() < until:
            done += rejecting(member)
            if done == batches:
                is_due.set()
    is_due.set()
    killer.join()
    member.close()
    assert done >= batches, "it ended before it was killed"


def letters(bootstrap: str) -> tuple[Counter[int], Counter[bytes | None]]:
    """Counts the dead letters by the offset of their record, and by value."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "x", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(LETTERS, 0, 0)])
    offsets: Counter[int] = Counter()
    values: Counter[bytes | None] = Counter()
    while (record := consumer.poll(20)) is not None and not record.error():
        offsets[int(dict(record.headers() or [])["__dlq.errors.offset"] or b"-1")] += 1
        values[record.value()] += 1
    consumer.close()
    return offsets, values


def killed(kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with PenstockBroker(*OPTIONS) as broker:
        with WireLink(broker.bootstrap) as link:
            make_topic(link, QUEUE)
            configure_group(link, QUEUE, GROUP)
        for number in range(kills):
            with WireLink(broker.bootstrap) as link:
                for _ in range(0, EACH, BATCH):
                    produce_keys(link, QUEUE, [b"k"] * BATCH)
            until_killed(broker, f"m{number}", chance.randint(1, 20))
            broker.start(0)
        last = joined(broker.bootstrap, "last")
        total = EACH * kills

        def all_given_up() -> bool:
            while rejecting(last):
                pass
            return letters(broker.bootstrap)[0].total() >= total

        wait_until(all_given_up, LIMIT_S, "a dead letter for each record")
        last.close()
        offsets, values = letters(broker.bootstrap)
    assert offsets == Counter(range(total)), "none is lost, none comes twice"
    assert values == Counter({b"v%d" % n: total // BATCH for n in range(BATCH)})


@pytest.mark.timeout(240)
def test_each_rejected_record_has_one_dead_letter_after_three_kills() -> None:
    killed(3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [2])
def test_each_of_4000_rejected_records_has_one_dead_letter_after_twenty_kills(seed: int) -> None:
    killed(20, seed)
