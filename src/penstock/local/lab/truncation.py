"""`lab fetch`, `lab truncation`, `lab divergence`: why truncation uses leader epochs (KIP-101)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.errors import StorageError
from penstock.local.lab.narration import Narrator
from penstock.local.lab.replicas import (
    BY_EPOCH,
    BY_HIGH_WATERMARK,
    HandMovedReplicas,
    Truncation,
)


@contextmanager
def replicas(truncation: Truncation) -> Iterator[HandMovedReplicas]:
    with TemporaryDirectory(prefix="penstock-lab-") as folder:
        moved = HandMovedReplicas(Path(folder), truncation)
        try:
            yield moved
        finally:
            moved.close()


def fetch(narrator: Narrator) -> None:
    """A follower learns of the high watermark one fetch late."""
    with replicas(BY_EPOCH) as on:
        narrator.title("One record, fetch by fetch")
        on.write(0, "a")
        narrator.show("the leader appends: LEO 1, HW 0", on.replicas())
        on.fetch(1)
        narrator.show(
            "first fetch: the follower copies; the leader does not know yet", on.replicas()
        )
        on.send_fetch(1)
        narrator.show("second fetch asks for offset 1: so the leader moves its HW", on.replicas())
        on.receive_fetch(1)
        narrator.show(
            "its answer carries the HW: the follower knows, one fetch late", on.replicas()
        )


def truncation(narrator: Narrator) -> None:
    """A committed record is lost by truncation to the high watermark, and kept by epochs."""
    for rule, kept in ((BY_HIGH_WATERMARK, ["a@0"]), (BY_EPOCH, ["a@0", "b@0"])):
        with replicas(rule) as on:
            narrator.title(f"A restart, then a new leader, with {rule.name}")
            for value in "ab":
                on.write(0, value)
                on.fetch(1)
            on.send_fetch(1)
            narrator.show("b is on both and committed; broker 1 does not know yet", on.replicas())
            on.restart(1)
            on.follow(1, leader=0)
            narrator.show("broker 1 restarts, and begins to follow", on.replicas())
            on.die(0)
            on.elect(1, (1,))
            narrator.show("broker 0 dies before the next fetch; broker 1 leads", on.replicas())
            on.restart(0)
            on.follow(0, leader=1)
            on.fetch(0)
            narrator.show("broker 0 comes back and follows", on.replicas())
            outcome(narrator, on, kept, kept)
            narrator.say(
                "b, which was acknowledged with acks=all, is gone"
                if len(kept) == 1
                else "nothing is lost: broker 1 cut only what its leader did not have"
            )


def divergence(narrator: Narrator) -> None:
    """Logs diverge at an offset forever with high watermarks, and not with epochs."""
    for rule, first in ((BY_HIGH_WATERMARK, ["a@0", "b@0"]), (BY_EPOCH, ["a@0", "c@1"])):
        with replicas(rule) as on:
            narrator.title(f"Power is lost on both brokers, with {rule.name}")
            for value in "ab":
                on.write(0, value)
                for _ in range(2):
                    on.fetch(1)
            narrator.show("a and b are committed; broker 1 has not flushed b", on.replicas())
            on.lose_power(1, flushed=1)
            on.die(0)
            narrator.show("power is lost: b remains on broker 0 alone", on.replicas())
            on.restart(1)
            on.elect(1, (1,))
            on.write(1, "c")
            narrator.show(
                "broker 1 is back first: it leads, and takes c at offset 1", on.replicas()
            )
            on.restart(0)
            on.follow(0, leader=1)
            narrator.show("broker 0 is back, and begins to follow", on.replicas())
            on.fetch(0)
            on.fetch(0)
            narrator.show("it has fetched", on.replicas())
            outcome(narrator, on, first, ["a@0", "c@1"])
            narrator.say(
                "at offset 1 one has b and the other c, and nobody notices"
                if rule is BY_HIGH_WATERMARK
                else "both have c: epoch 0 ended at offset 1 on the leader, so b was cut"
            )


def outcome(narrator: Narrator, on: HandMovedReplicas, *expected: list[str]) -> None:
    found = [on.values(broker) for broker in (0, 1)]
    if found != list(expected):
        raise StorageError(f"the logs are {found}, and should be {list(expected)}")
    same = "the same" if found[0] == found[1] else "different"
    narrator.say(f"the logs are {same}: {' '.join(found[0])} and {' '.join(found[1])}")
