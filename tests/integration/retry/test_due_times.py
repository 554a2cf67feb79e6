"""When records arrive: due times, order, schedules, cancellations, forged headers."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from penstock.client.cluster import Client
from penstock.client.produce import ProducerRecord
from penstock.clock import SystemClock
from penstock.record.dead_letter import read_dead_letter
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Outcome
from penstock.retry.state_topic import load_progress
from penstock.retry.store.index import Entry, IndexKey
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, serving, topics


def test_a_record_overtakes_one_that_is_due_in_a_week(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            sent_ms = SystemClock().now_ms()
            await send(client, delayed(name, b"late", WEEK_MS), delayed(name, b"soon", 500, b"k"))
            ((found, at_ms),) = await arrived(client, f"{name}-to", 1)
        assert (found.record.value, found.record.key, found.record.headers) == (b"soon", b"k", [])
        assert at_ms >= sent_ms + 500 - 1

    run(bootstrap, scenario)


def test_records_arrive_in_order_and_invalid_ones_become_dead_letters(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}.dlq")
        due = b"%d" % (SystemClock().now_ms() + 300)
        at = [("penstock-deliver-at", due)]
        bad = ProducerRecord(
            name, b"bad", b"k", [("penstock-deliver-at", b"tomorrow"), ("x", b"y")]
        )
        same = [ProducerRecord(name, b"%d" % n, b"k", at) for n in range(50)]
        await send(client, bad, *same)
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((dead, _),) = await arrived(client, f"{name}.dlq", 1)
            found = await arrived(client, f"{name}-to", 50)
        assert [each.record.value for each, _ in found] == [b"%d" % n for n in range(50)]
        letter = read_dead_letter(dead.record.headers)
        assert letter is not None
        assert (letter.source, letter.topic, letter.offset) == ("delay", name, 0)
        assert "tomorrow" in letter.error
        assert ("x", b"y") in dead.record.headers

    run(bootstrap, scenario)


def test_retries_come_back_with_attempts_and_end_as_dead_letters(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    settings = {
        "penstock.retry.to": f"{name}-to",
        "penstock.retry.backoff": "50ms,100ms",
        "penstock.dlq.topic": f"{name}-dead",
    }

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}-dead")
        async with serving(client, tmp_path / "s", name, settings):
            headers: list[tuple[str, bytes | None]] = [("penstock-error", b"no stock")]
            for attempt in (1, 2):
                await send(client, ProducerRecord(name, b"v", b"k", headers))
                found, _ = (await arrived(client, f"{name}-to", attempt))[-1]
                headers = found.record.headers
                assert dict(headers)["penstock-attempt"] == b"%d" % attempt
            await send(client, ProducerRecord(name, b"v", b"k", headers))
            ((dead, _),) = await arrived(client, f"{name}-dead", 1)
        letter = read_dead_letter(dead.record.headers)
        assert letter is not None
        assert letter.error == "gave up after 2 attempts: no stock"
        assert (letter.attempt, letter.offset, letter.source) == (2, 0, "retry")

    run(bootstrap, scenario)


def test_a_schedule_fires_until_its_tombstone(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            every = [("penstock-schedule", b"every 1s")]
            await send(client, ProducerRecord(name, b"tick", b"k", every))
            found = await arrived(client, f"{name}-to", 2)
            assert [each.record.value for each, _ in found] == [b"tick", b"tick"]
            await send(client, ProducerRecord(name, None, b"k"), delayed(name, b"end", 2500))
            assert (await arrived(client, f"{name}-to", 3))[-1][0].record.value == b"end"

    run(bootstrap, scenario)


def test_a_cancelled_record_does_not_arrive(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            offset, _ = await send(
                client, delayed(name, b"cancelled", 600), delayed(name, b"later", 900)
            )
            await send(
                client, ProducerRecord(name, None, None, [("penstock-cancel", b"%d" % offset)])
            )
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"later"

    run(bootstrap, scenario)


def test_a_cancellation_far_behind_a_due_record_is_found(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        (offset,) = await send(client, delayed(name, b"cancelled", 10))
        for _ in range(3):  # more than a fetch returns
            await send(client, delayed(name, bytes(900_000), WEEK_MS))
        cancel = ProducerRecord(name, None, None, [("penstock-cancel", b"%d" % offset)])
        await send(client, cancel, delayed(name, b"end", 10))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = (await arrived(client, f"{name}-to", 1))[:1]
        assert found.record.value == b"end"

    run(bootstrap, scenario)


def test_a_record_is_either_cancelled_or_delivered_when_both_race(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    count = 60

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        key = IndexKey((await client.topic(name)).id, 0)
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            due = SystemClock().now_ms() + 300
            offsets = []
            for n in range(count):
                at = [("penstock-deliver-at", b"%d" % (due + 10 * n))]
                offsets += await send(client, ProducerRecord(name, b"%d" % n, b"k", at))
            for n in range(0, count, 2):
                await asyncio.sleep(max(0, due + 10 * n - SystemClock().now_ms()) / 1000)
                cancel = [("penstock-cancel", b"%d" % offsets[n])]
                await send(client, ProducerRecord(name, None, None, cancel))
            await send(client, delayed(name, b"end", 200))
            found = list[bytes]()
            while not found or found[-1] != b"end":
                seen = await arrived(client, f"{name}-to", len(found) + 1)
                found = [each.record.value or b"" for each, _ in seen]
        progress = (await load_progress(client, [key]))[key]
        arrived_at = {offsets[int(each)] for each in found[:-1]}
        assert len(found) == len(set(found))
        assert {offsets[n] for n in range(1, count, 2)} <= arrived_at
        for offset in offsets:
            outcome = progress.outcome(offset)
            if outcome is not None:  # None means that its chunk is not done yet
                assert (outcome is Outcome.DELIVERED) == (offset in arrived_at)

    run(bootstrap, scenario)


def test_a_header_whose_name_is_not_text_is_delivered(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    """Otherwise it would stop every service that reads it."""

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        headers = [("\udcff\udcfe", b"x"), ("penstock-delay-ms", b"10")]
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            await send(client, ProducerRecord(name, b"v", None, headers))
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.headers == headers[:1]

    run(bootstrap, scenario)


def test_forged_headers_become_dead_letters_and_block_nothing(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    """CVE-2026-41727: in other products, one header paused a consumer for ever."""
    count = 10_000
    forged = [
        ("penstock-deliver-at", b"9" * 30),
        ("penstock-deliver-at", b"-1"),
        ("penstock-delay-ms", b"9223372036854775807"),
        ("penstock-delay-ms", b"\xff"),
        ("penstock-attempt", b"1e9"),
        ("penstock-attempt", b"99999999999999999999"),
        ("penstock-attempt", b"1000000"),
        ("penstock-cancel", b"-5"),
    ]
    settings = {"penstock.retry.to": f"{name}-to", "penstock.retry.backoff": "10ms"}

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}.dlq")
        sending = [
            ProducerRecord(name, b"%d" % n, b"k", [forged[n % len(forged)]]) for n in range(count)
        ]
        async with serving(client, tmp_path / "s", name, settings):
            await send(client, *sending, ProducerRecord(name, b"good", b"k"))
            ((good, _),) = await arrived(client, f"{name}-to", 1)
            dead = await arrived(client, f"{name}.dlq", count)
        assert good.record.value == b"good"
        assert [each.record.value for each, _ in dead] == [b"%d" % n for n in range(count)]
        letters = [read_dead_letter(each.record.headers) for each, _ in dead]
        assert all(each is not None and each.error for each in letters)

    run(bootstrap, scenario)


def test_many_records_are_evaluated_in_turns(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may have a schedule of its own; heartbeats continue meanwhile."""
    turn, judged = 0, Counter[int]()
    judge = DelayPartition.read

    def read(partition: DelayPartition, record: Record, now_ms: int) -> list[Entry]:
        judged[turn] += 1
        return judge(partition, record, now_ms)

    async def scenario(client: Client) -> None:
        nonlocal turn
        await topics(client, name, f"{name}-to")
        await send(client, *(delayed(name, b"%d" % n, WEEK_MS) for n in range(1000)))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            while judged.total() < 1000:
                await asyncio.sleep(0)
                turn += 1

    monkeypatch.setattr(DelayPartition, "read", read)
    run(bootstrap, scenario)
    assert max(judged.values()) <= 100, judged
