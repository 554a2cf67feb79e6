"""How an application starts and ends, without a broker."""

import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from penstock.sdk.app import App, Guarantee
from penstock.sdk.parallel.consumer import ParallelConsumer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def ignore(_: Any) -> None: ...


def test_a_consumer_that_cannot_be_created_leaves_no_other_open() -> None:
    app = App(NOWHERE, group="g")
    app.on("first")(ignore)
    app.on("second", config={"fetch.min.bytes": "many"})(ignore)
    with pytest.raises(KafkaException, match=r"fetch\.min\.bytes"):
        app.run()
    (first,) = app._running
    assert isinstance(first, ParallelConsumer)
    with pytest.raises(RuntimeError, match="closed"):
        first.client.assignment()


def test_the_instance_name_is_released_if_the_start_fails(tmp_path: Path) -> None:
    app = App(NOWHERE, group="g", state_dir=tmp_path)
    app.on("t", guarantee=Guarantee.EXACTLY_ONCE, config={"fetch.min.bytes": "many"})(ignore)
    with pytest.raises(KafkaException):
        app.run()
    assert all(each._opened is None for each in app._named.values())


def test_the_programs_signal_handlers_are_restored_at_the_end() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    app = App(NOWHERE, group="g")
    app.stop()
    app.run()
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before
