"""A stream whose topic ends before its position: was its log truncated, or the topic recreated?"""

from collections.abc import Iterable
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMinRows

from penstock.client.listing import IsolationLevel
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.options import Options
from penstock.spark.source import stream_reader
from penstock.spark.source.data_loss import DataLoss
from penstock.spark.source.lookup import topics_of
from penstock.spark.source.settings import stream_settings
from penstock.spark.source.stream_reader import StreamReader
from penstock.types import NO_UUID, TopicPartition, Uuid

FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


class Cluster:
    """One topic with one partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, topic_id: Uuid, end: int) -> None:
        self.id, self.end = topic_id, end
        self.stable: int | None = None
        """The last stable offset; None: no transaction is open."""

        def topics(*_: Any, **__: Any) -> dict[str, Any]:
            return {"t": SimpleNamespace(id=self.id, partitions={0: None})}

        monkeypatch.setattr(stream_reader, "topics_of", topics)
        monkeypatch.setattr(stream_reader, "latest", self.latest)
        monkeypatch.setattr(stream_reader, "earliest", lambda _, found: dict.fromkeys(found, 0))
        monkeypatch.setattr(StreamReader, "_connected", lambda _: None)

    def latest(
        self, _: object, partitions: Iterable[TopicPartition], isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        is_open = self.stable is not None and isolation is IsolationLevel.READ_COMMITTED
        return dict.fromkeys(partitions, self.stable if is_open and self.stable else self.end)

    def reader(
        self, *, fails: bool, isolation: str = "read_uncommitted", **options: str
    ) -> StreamReader:
        given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "failOnDataLoss": str(fails)}
        given |= {"kafka.isolation.level": isolation, **options}
        return StreamReader(stream_settings(Options(given))[0])


def planned(reader: StreamReader, start: int) -> list[str]:
    begun = {"t": {"0": start}}
    end = reader.latestOffset(begun, ReadAllAvailable())
    return [str(each.value) for each in reader.partitions(begun, end)]


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        (FIRST, FIRST, []),  # truncated, as by an unclean election
        (FIRST, SECOND, ["t-0 [0, 7)"]),
        (NO_UUID, NO_UUID, ["t-0 [0, 7)"]),  # cannot be known
    ],
)
def test_records_before_the_end_of_a_truncated_log_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch, before: Uuid, after: Uuid, read: list[str]
) -> None:
    cluster = Cluster(monkeypatch, before, 10)
    for fails in (False, True):
        cluster.id, cluster.end = before, 10
        reader = cluster.reader(fails=fails)
        assert planned(reader, 4) == ["t-0 [4, 10)"]
        cluster.id, cluster.end = after, 7
        if fails:
            with pytest.raises(DataLoss, match="recreated" if read else "truncated"):
                planned(reader, 10)
        else:
            assert planned(reader, 10) == read
            cluster.end = 9
            assert planned(reader, 7) == ["t-0 [7, 9)"], "it goes on where the log ended"


def test_a_truncation_before_the_start_cannot_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Cluster(monkeypatch, FIRST, 7).reader(fails=False)
    assert planned(reader, 10) == ["t-0 [0, 7)"]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "available now"])
def test_a_position_in_an_open_transaction_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, fails: bool, ends: bool
) -> None:
    """A query that read uncommitted records now reads committed ones: nothing is lost."""
    cluster = Cluster(monkeypatch, FIRST, 15)
    cluster.stable = 10
    reader = cluster.reader(fails=fails, isolation="read_committed")
    if ends:
        reader.prepareForTriggerAvailableNow()
    assert planned(reader, 15) == []
    if not ends:
        cluster.stable, cluster.end = None, 17
        assert planned(reader, 15) == ["t-0 [15, 17)"]


def test_a_reader_of_committed_records_notices_a_truncated_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(monkeypatch, FIRST, 15)
    reader = cluster.reader(fails=True, isolation="read_committed")
    assert planned(reader, 4) == ["t-0 [4, 15)"]
    cluster.stable, cluster.end = 10, 12
    with pytest.raises(DataLoss, match="truncated"):
        planned(reader, 15)


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "available now"])
@pytest.mark.parametrize("known", [0, 1], ids=["topic", "partition"])
def test_a_run_that_begins_at_a_lagging_broker_keeps_all_positions(
    monkeypatch: pytest.MonkeyPatch, ends: bool, known: int
) -> None:
    """A position that left the checkpoint would be read again from the start."""
    reader = Cluster(monkeypatch, FIRST, 9).reader(fails=False)
    counts = [*[known] * (3 + ends), 2]

    def existing(_: object) -> dict[str, Any]:
        count = counts.pop(0) if len(counts) > 1 else counts[0]
        return {"t": SimpleNamespace(id=FIRST, partitions=dict.fromkeys(range(count)))}

    with BlockingClient(reader._settings.client) as client:
        monkeypatch.setattr(client, "existing", existing)
        monkeypatch.setattr(stream_reader, "topics_of", topics_of)
        monkeypatch.setattr(StreamReader, "_connected", lambda _: client)
        if ends:
            reader.prepareForTriggerAvailableNow()
        begun = {"t": {"0": 4, "1": 5}}
        end = reader.latestOffset(begun, ReadAllAvailable())
        assert end == {"t": {"0": 9, "1": 9}}
        assert [str(each.value) for each in reader.partitions(begun, end)] == [
            "t-0 [4, 9)",
            "t-1 [5, 9)",
        ]


@pytest.mark.parametrize("after", [FIRST, SECOND], ids=["deleted", "recreated"])
def test_a_waiting_micro_batch_waits_for_a_deleted_partition_only_once(
    monkeypatch: pytest.MonkeyPatch, after: Uuid
) -> None:
    """Its start keeps the partition: each trigger took the whole timeout, and a topic that was
    recreated with fewer partitions ended the query.
    """
    cluster = Cluster(monkeypatch, FIRST, 9)
    reader = cluster.reader(fails=False, minOffsetsPerTrigger="1000")
    waited_for: list[set[str]] = []

    def topics(*given: Any, **_: Any) -> dict[str, Any]:
        waited_for.append({str(each) for each in given[2]})
        return {"t": SimpleNamespace(id=cluster.id, partitions={0: None})}

    monkeypatch.setattr(stream_reader, "topics_of", topics)
    reader._batch_at = monotonic()
    reader._topic_ids["t"], cluster.id = FIRST, after
    begun = {"t": {"0": 4, "1": 5}}
    for _ in range(2):
        assert reader.latestOffset(begun, ReadMinRows(1000)) == begun
    assert waited_for == [{"t-0", "t-1"}, {"t-0"}]
