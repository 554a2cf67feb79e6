"""Delay topics whose logs lost their end, and have had other records there since."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.client.cluster import Client
from penstock.client.produce import ProducerRecord
from penstock.config.delay_route import route_of
from penstock.retry.service import DelayService
from penstock.retry.store.sqlite import SqliteIndex
from penstock.testing.broker import EmbeddedBroker
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, topics


class Machine:
    """A broker, and a service with a store beside it, which can lose their power."""

    def __init__(self, folder: Path) -> None:
        self.directory, self.copy, self.store = folder / "d", folder / "copy", folder / "s"
        self.sent = 0
        self.arrived: list[bytes | None] = []

    def on(self, *values: bytes, before: tuple[bytes, ...] = ()) -> list[bytes | None]:
        """Sends these values, those of `before` before the service starts; returns what has arrived
        since. The value `waits` is due only in a week.
        """

        async def scenario(client: Client) -> None:
            if not self.sent:
                await topics(client, "later", "to")
            await send(client, *map(_record, before))
            self.sent += sum(value != b"waits" for value in [*before, *values])
            await self._served(client, values)

        settings = {"group.initial.rebalance.delay.ms": "0"}
        with EmbeddedBroker(directory=self.directory, settings=settings) as broker:
            run(broker.bootstrap, scenario)
        known, self.arrived = len(self.arrived), self._found
        return self.arrived[known:]

    async def _served(self, client: Client, values: tuple[bytes, ...]) -> None:
        route = route_of("later", {"penstock.delay.to": "to"})
        assert route is not None
        index = SqliteIndex(self.store)
        async with DelayService(client, index, {"later": route}, instance="i") as service:
            while not service.partitions:
                await service.step()
            await send(client, *map(_record, values))
            async with asyncio.TaskGroup() as tasks:
                arriving = tasks.create_task(arrived(client, "to", self.sent))
                while not arriving.done():
                    await service.step()
                for _ in range(3):  # a duplicate would come now
                    await service.step()
            found = await arrived(client, "to", self.sent)
        await index.close()
        self._found = [each.record.value for each, _ in found]

    def save(self) -> None:
        (log,) = self.directory.glob("**/later-0")
        shutil.copytree(log, self.copy)

    def lose(self) -> None:
        """Loses what was written since the copy was saved."""
        (log,) = self.directory.glob("**/later-0")
        shutil.rmtree(log)
        shutil.copytree(self.copy, log)

    def elect(self) -> None:
        """Gives the delay topic's next leader the next epoch."""
        at = ("/brokers/topics/later/partitions/0/state",)
        with closing(sqlite3.connect(self.directory / "metadata.sqlite")) as file, file:
            (state,) = file.execute("SELECT data FROM node WHERE path=?", at).fetchone()
            before, after = (b'"leader_epoch":%d,' % (self.epoch + each) for each in (0, 1))
            assert before in state
            file.execute("UPDATE node SET data=? WHERE path=?", (state.replace(before, after), *at))
        self.epoch += 1

    epoch = 0


def _record(value: bytes) -> ProducerRecord:
    return delayed("later", value, WEEK_MS if value == b"waits" else 10)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("penstock.retry.service.SHORTENED_S", 0.0)
    return Machine(tmp_path)


@pytest.mark.parametrize("header", ["penstock-epochs", "none"])
def test_new_records_at_lost_offsets_are_delivered(
    machine: Machine, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records delivered under the same offsets are gone. Former versions wrote no epochs."""
    with monkeypatch.context() as former:
        former.setattr("penstock.retry.state_topic.HEADER", header)
        machine.on(b"kept")
        machine.save()
        machine.on(b"lost0", b"lost1", b"lost2")
    machine.lose()
    assert machine.on(b"new0", b"new1") == [b"new0", b"new1"]
    assert machine.on(b"new2", b"new3", b"new4") == [b"new2", b"new3", b"new4"]


def test_records_still_in_the_log_are_not_delivered_again(machine: Machine) -> None:
    """They belong to the second leader, which led when they were delivered."""
    machine.on(b"waits", b"kept")
    machine.elect()
    machine.on(b"a", b"b")
    machine.save()
    machine.on(b"lost0", b"lost1")
    machine.lose()
    assert machine.on(b"new0", b"new1") == [b"new0", b"new1"]


def test_new_records_of_a_log_that_grew_again_are_delivered(machine: Machine) -> None:
    """The log is longer than ever when the service comes back."""
    machine.on(b"waits", b"kept")
    machine.save()
    machine.on(b"lost0", b"lost1")
    machine.lose()
    machine.elect()
    before = (b"new0", b"new1", b"new2", b"new3")
    assert machine.on(b"new4", before=before) == [*before, b"new4"]


def test_elections_without_loss_repeat_nothing(machine: Machine) -> None:
    machine.on(b"waits", b"0")
    for each in (b"1", b"2", b"3"):
        machine.elect()
        assert machine.on(each + b"b", before=(each + b"a",)) == [each + b"a", each + b"b"]


def test_delivered_and_deleted_records_are_not_taken_for_lost(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second leader's first records are deleted, and none of the first leader's are left."""
    monkeypatch.setattr("penstock.retry.service.TRIM_MS", 0)
    machine.on(b"0")
    machine.elect()
    for each in (b"a", b"b", b"c"):
        assert machine.on(each) == [each]
    assert not [each for each in caplog.messages if "lost" in each]
