"""The task that sends all records."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from penstock.client.produce import Acks
from penstock.client.record_sender import ProducedRecord, ProducerRecord
from penstock.rest.sender import RestSender
from penstock.types import Offset, TopicPartition


class Producer:
    """Fails for one value, and hangs for a topic without a leader."""

    async def deliver(self, records: Iterable[ProducerRecord], **_: object) -> list[Any]:
        found = list(records)
        if any(each.value == b"bad" for each in found):
            raise OverflowError
        if any(each.topic == "leaderless" for each in found):
            await asyncio.Event().wait()
        return [ProducedRecord(TopicPartition(each.topic, 0), Offset(7)) for each in found]


async def unchecked(*_: object, **__: object) -> None: ...


def new_sender() -> RestSender:
    sender = RestSender(client=None)  # type: ignore[arg-type]  # none is asked
    sender._makers = dict.fromkeys(sender._makers, Producer)  # type: ignore[arg-type]
    return sender


def test_records_that_cannot_be_written_do_not_end_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def requests() -> None:
        sender = new_sender()
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(sender.run())
            with pytest.raises(OverflowError):
                await sender.send([ProducerRecord("t", b"bad")], Acks.ALL)
            (written,) = await sender.send([ProducerRecord("t", b"good")], Acks.ALL)
            assert isinstance(written, ProducedRecord)
            sending.cancel()

    monkeypatch.setattr(RestSender, "_check", unchecked)
    asyncio.run(requests())


def test_a_topic_that_cannot_be_written_does_not_delay_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def requests() -> None:
        sender = new_sender()
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(sender.run())
            stuck = tasks.create_task(sender.send([ProducerRecord("leaderless", b"")], Acks.ALL))
            for acks in Acks:
                async with asyncio.timeout(30):
                    await sender.send([ProducerRecord("t", b"good")], acks)
            assert not stuck.done()
            stuck.cancel()
            sending.cancel()

    monkeypatch.setattr(RestSender, "_check", unchecked)
    asyncio.run(requests())
