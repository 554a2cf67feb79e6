"""How long a partition takes no writes after its leader is killed, shut down or paused."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from os import kill
from threading import Event, Thread

from bench.cluster_subject import WAIT_S, Subject

from peers.process import wait_until

Fall = Callable[[Subject, int], object]


def killed(subject: Subject, broker: int) -> None:
    subject.brokers.kill(broker)


def shut_down(subject: Subject, broker: int) -> None:
    subject.brokers.stop(broker)


def paused(subject: Subject, broker: int) -> None:
    """As if the machine were gone: connections stay open, without any response."""
    kill(subject.brokers.pids[broker], signal.SIGSTOP)


def gap_s(subject: Subject, fall: Fall, *, is_controller: bool = False) -> float:
    """The longest time without a write around the fall of a leader, in seconds.

    The leader is or is not the controller as well. The broker is back when this returns.
    """
    controller = subject.controller()
    leader = controller if is_controller else (controller + 1) % 3
    topic = subject.topic(leader=leader)
    subject.wait_until_in_sync(topic)
    with writing(subject, topic) as acked_s:
        before = len(acked_s)
        try:
            fall(subject, leader)
            wait_until(lambda: subject.leader(topic) != leader, WAIT_S, "another leader")
            seen = len(acked_s)
            wait_until(lambda: len(acked_s) > seen + 50, WAIT_S, "writes")
            longest = max(b - a for a, b in pairwise(acked_s[before - 1 :]))
        finally:
            _bring_back(subject, leader)
        subject.wait_until_in_sync(topic)
    return longest


def _bring_back(subject: Subject, broker: int) -> None:
    pids = subject.brokers.pids
    if broker in pids:
        kill(pids[broker], signal.SIGCONT)
    else:
        subject.brokers.start(broker)


@contextmanager
def writing(subject: Subject, topic: str) -> Iterator[list[float]]:
    """Writes to one partition all the time; yields the times at which records were acknowledged."""
    # By default librdkafka asks for a new leader only once a second while a leader does not answer.
    asks_often = {"linger.ms": 0, "topic.metadata.refresh.interval.ms": 100}
    producer, acked_s, done = subject.producer(**asks_often), list[float](), Event()

    def reported(error: object, _: object) -> None:
        if not error:
            acked_s.append(time.monotonic())

    def write_on() -> None:
        while not done.is_set():
            if len(producer) < 100:
                producer.produce(topic, b"x" * 100, partition=0, on_delivery=reported)
            producer.poll(0.005)
        producer.flush(WAIT_S)

    writer = Thread(target=write_on)
    writer.start()
    try:
        wait_until(lambda: len(acked_s) > 200, WAIT_S, "writes")
        yield acked_s
    finally:
        done.set()
        writer.join()
