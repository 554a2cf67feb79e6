"""Moves dead letters back to their origin, exactly once.

Each batch is one transaction: the records, and marks for their letters. All runs for a topic share
a transactional id. So a new run aborts the transaction that a killed run left, before it reads the
marks, and goes on after the last commit; two concurrent runs fence each other.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.record_sender import ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.clock import Clock, SystemClock
from penstock.config.delay_route import Route
from penstock.errors import ErrorCode, KafkaError
from penstock.retry.letters import Letter, LetterTopic, open_letters, read_letters
from penstock.retry.progress import Outcome
from penstock.retry.redriven_record import RefusedLetter, redriven_record, target_of
from penstock.retry.selection import Selection
from penstock.retry.state_topic import REDRIVE_TOPIC, create_state_topic, state_records
from penstock.types import TopicPartition

OnRead: TypeAlias = Callable[[int, int], None]
"""Called with the number of offsets read, and their total."""

FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
BATCH: Final = 500
TRANSACTION_BYTES: Final = 16 << 20
"""A larger transaction would take longer than its time-out, and fill memory."""
TRANSACTION_TIMEOUT_MS: Final = 30_000


@dataclass(slots=True)
class Redriven:
    """How many letters went to which topic, and why others stay."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Counts by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveOptions:
    """Options of a redrive."""

    to: str | None = None
    """One topic for all letters; None: each goes to its origin."""
    only: Collection[str] | None = None
    """Topics that may be written; None: any topic."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    rate: float | None = None
    """Records per second; None: no limit."""
    limit: int | None = None
    dry_run: bool = False


class OthersMark(KafkaError):
    """Another redrive or purge has taken over the topic."""

    code = ErrorCode.PRODUCER_FENCED


class LetterMarks:
    """Marks letters as redriven or purged, in transactions.

    `async with LetterMarks(client, topic) as marks`: from then on no other process can mark letters
    of this topic, and all earlier marks are known. At the end an open transaction is aborted.
    """

    def __init__(self, client: Client, topic: str) -> None:
        self._client, self._name = client, topic
        self.producer = TransactionalProducer(
            client, f"penstock-redrive-{topic}", timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        self.letters: LetterTopic

    async def __aenter__(self) -> "LetterMarks":
        # Fails if the topic does not exist, before anything is created for it.
        await self._client.retrying(lambda: self._client.topic(self._name))
        await create_state_topic(self._client, REDRIVE_TOPIC)
        await self.producer.init()
        self.letters = await open_letters(self._client, self._name)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.producer.close()
        if isinstance(error, KafkaError) and error.code in FENCED:
            raise OthersMark(
                f"another redrive or purge of {self._name} has begun, and this one has ended: "
                "what it had done is done once, the rest is left to the other"
            ) from error

    async def commit(self, marked: Mapping[TopicPartition, list[int]], outcome: Outcome) -> None:
        """Write the marks, and end the open transaction."""
        records: list[ProducerRecord] = []
        for partition, offsets in marked.items():
            progress = self.letters.progress[partition]
            for each in offsets:
                progress.stage(each, outcome)
            records += state_records(self.letters.keys[partition], progress, REDRIVE_TOPIC)
        await self.producer.send(records)
        await self.producer.commit()
        for partition in marked:
            self.letters.progress[partition].commit()


async def redrive(
    client: Client,
    topic: str,
    selection: Selection,
    options: RedriveOptions,
    on_read: OnRead | None = None,
    clock: Clock | None = None,
) -> Redriven:
    """Redrive the selected letters that are not done yet. If it raises, run it again."""
    result = Redriven()
    if options.dry_run:
        letters = await open_letters(client, topic)
        run = _Run(client, letters, None, options, result, clock or SystemClock())
        await run.over(selection, on_read)
        return result
    async with LetterMarks(client, topic) as marks:
        run = _Run(client, marks.letters, marks, options, result, clock or SystemClock())
        await run.over(selection, on_read)
    return result


class _Run:
    """One pass over the letters of a topic; without marks, a dry run."""

    def __init__(
        self,
        client: Client,
        letters: LetterTopic,
        marks: LetterMarks | None,
        options: RedriveOptions,
        result: Redriven,
        clock: Clock,
    ) -> None:
        self._client, self._letters, self._marks = client, letters, marks
        self._options, self._result, self._clock = options, result, clock
        self._partitions: dict[str, int] = {}
        self._asked: dict[str, RefusedLetter | None] = {}
        """Target topics that were looked up; with a refusal if the cluster gave an error."""
        self._read_to: dict[TopicPartition, int] = {}
        self._began_ms = clock.monotonic_ms()

    async def over(self, selection: Selection, on_read: OnRead | None) -> None:
        rate, limit = self._options.rate, self._options.limit
        # With a rate limit, batches are small, so that records do not come in bursts.
        size = BATCH if rate is None else max(1, min(BATCH, round(rate / 10)))
        batch: list[tuple[Letter, ProducerRecord]] = []
        size_bytes = 0
        async for each in read_letters(self._client, self._letters, selection):
            if limit is not None and self._result.counts.total() + len(batch) >= limit:
                break
            planned = await self._planned(each)
            if isinstance(planned, RefusedLetter):
                self._result.refused[planned.reason] += 1
                continue
            batch.append((each, planned))
            size_bytes += planned.size_bytes
            if len(batch) >= size or size_bytes >= TRANSACTION_BYTES:
                await self._move(batch)
                batch, size_bytes = [], 0
            if on_read is not None:
                on_read(self._offsets_read(each), self._letters.size)
        if batch:
            await self._move(batch)
        if on_read is not None:
            on_read(self._letters.size, self._letters.size)

    def _offsets_read(self, letter: Letter) -> int:
        self._read_to[letter.partition] = letter.record.offset + 1
        return sum(at - self._letters.starts[each] for each, at in self._read_to.items())

    async def _planned(self, letter: Letter) -> ProducerRecord | RefusedLetter:
        target = target_of(letter, self._options.to, self._options.routes)
        if isinstance(target, RefusedLetter):
            return target
        if self._options.only is not None and target not in self._options.only:
            return RefusedLetter(
                f"{target} was found after the targets were confirmed; run it again"
            )
        origin = None if letter.dead is None else letter.dead.topic
        for each in (target, origin):
            if each is not None and each not in self._asked:
                self._asked[each] = await self._look_for(each)
        return self._asked[target] or redriven_record(letter, target, self._partitions)

    async def _look_for(self, topic: str) -> RefusedLetter | None:
        """One request per topic: a forged name in a letter must not hide the targets of others."""
        try:
            found = await self._client.existing_topics([topic])
        except BrokerRefused as error:
            return RefusedLetter(str(error))
        self._partitions |= {each.name: len(each.partitions) for each in found}
        return None

    async def _move(self, batch: list[tuple[Letter, ProducerRecord]]) -> None:
        if self._marks is not None:
            batch = await self._written(self._marks, batch)
        self._result.counts.update(record.topic for _, record in batch)
        if self._marks is not None and self._options.rate is not None:
            due_ms = self._began_ms + 1000 * self._result.counts.total() / self._options.rate
            await asyncio.sleep(max(0.0, due_ms - self._clock.monotonic_ms()) / 1000)

    async def _written(
        self, marks: LetterMarks, batch: list[tuple[Letter, ProducerRecord]]
    ) -> list[tuple[Letter, ProducerRecord]]:
        """Write the batch in a transaction; returns what the targets accepted."""
        await marks.producer.begin()
        results = await marks.producer.deliver([record for _, record in batch], past_refused=True)
        taken = []
        marked: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        for (letter, record), written in zip(batch, results, strict=True):
            if isinstance(written, BrokerRefused):
                self._result.refused[f"{record.topic} rejected it: {written}"] += 1
                continue
            taken.append((letter, record))
            marked[letter.partition].append(letter.record.offset)
        await marks.commit(marked, Outcome.DELIVERED)
        return taken
