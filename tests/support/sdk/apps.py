"""Helpers for tests of applications: build one, run it on a thread, inspect it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.record.dead_letter import read_dead_letter
from penstock.sdk.app import App
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records


def app_of(broker: EmbeddedBroker, group: str, **more: Any) -> App:
    config = {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0}
    return App(config, group=group, **{"instance": "test", **more})


def written(broker: EmbeddedBroker, topic: str, *values: bytes) -> None:
    broker.create_topic(topic, 1)
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0}) as producer:
        producer.send_all(Outgoing(topic, value, b"k") for value in values)


@contextmanager
def running(app: App) -> Iterator[None]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            app.run()
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        app.stop()
        thread.join(30)
    if errors:
        raise errors[0]


def letters(broker: EmbeddedBroker, topic: str) -> list[tuple[bytes | None, str, int | None]]:
    found = []
    for each in all_records(broker.bootstrap, topic):
        letter = read_dead_letter(each.headers() or [])  # type: ignore[arg-type]
        assert letter is not None
        assert (letter.source, letter.topic is not None) in {("sdk", True), ("retry", True)}
        found.append((each.value(), letter.error, letter.offset))
    return found
