"""Order per key while handlers fail, consumers join and leave, and some are killed, all at once."""

import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.sdk.producer import Producer
from penstock.testing.broker import EmbeddedBroker
from support.sdk import keyed
from support.sdk.waiting import wait_until

KEYS = 12
RECORDS = 1_800
SEEDS = range(12)


@pytest.fixture(scope="module")
def quick_broker() -> Iterator[EmbeddedBroker]:
    settings = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}
    with EmbeddedBroker(settings=settings) as broker:
        yield broker


@contextmanager
def consuming(command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def handled(file: Path) -> list[tuple[bytes, bytes, int]]:
    return [each for each in everything(file) if each[1] != keyed.LOST]


def everything(file: Path) -> list[tuple[bytes, bytes, int]]:
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    parts = [line.split() for line in lines if line.endswith(b"\n")]
    return [(process, key, int(value)) for process, key, value in parts]


@pytest.mark.row("A059")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.soak) for each in SEEDS[1:])]
)
def test_each_key_stays_in_order_whatever_happens_to_its_consumers(
    quick_broker: EmbeddedBroker, tmp_path: Path, seed: int
) -> None:
    topic, file, dice = f"keyed-{seed}", tmp_path / "handled", random.Random(seed)
    quick_broker.create_topic(topic, 4)
    with Producer({"bootstrap.servers": quick_broker.bootstrap}) as producer:
        for value in range(RECORDS):
            producer.send(topic, b"%d" % value, key=b"%d" % (value % KEYS))
    kills = 0
    with ExitStack() as stack:

        def started(number: int) -> "subprocess.Popen[bytes]":
            command = [sys.executable, keyed.__file__, quick_broker.bootstrap, topic, str(file)]
            return stack.enter_context(consuming([*command, f"{seed}-{number}"]))

        running = [started(0), started(1)]
        ways = ["kill", "stop", "join", "kill"]
        dice.shuffle(ways)
        for number, way in enumerate(ways, 2):
            until = dice.randrange(100, 250) + len({each[2] for each in handled(file)})
            wait_until(
                lambda until=until: len({each[2] for each in handled(file)}) >= until,  # type: ignore[misc]
                "work goes on",
            )
            if way != "join":
                one = running.pop(dice.randrange(len(running)))
                one.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
                kills += way == "kill"
            running.append(started(number))
        wait_until(lambda: len({each[2] for each in handled(file)}) == RECORDS, "all are handled")
    by_member: defaultdict[tuple[bytes, int, bytes], list[int]] = defaultdict(list)
    first: defaultdict[bytes, list[int]] = defaultdict(list)
    losses: Counter[bytes] = Counter()
    for process, key, value in everything(file):
        if key == keyed.LOST:  # it returns as another member, and starts at the last commit
            losses[process] += 1
            continue
        by_member[process, losses[process], key].append(value)
        if value not in first[key]:
            first[key].append(value)
    assert dict(first) == {b"%d" % key: list(range(key, RECORDS, KEYS)) for key in range(KEYS)}
    for (_, number, _), each in by_member.items():
        # A record that was in progress when the member was removed finishes after that.
        values = each[1:] if number else each
        assert values == sorted(set(values)), "a member goes back to an earlier record of a key"
    repeated = len(handled(file)) - RECORDS
    assert repeated <= (kills + losses.total()) * keyed.REDO_AT_MOST
