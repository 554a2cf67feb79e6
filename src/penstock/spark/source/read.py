"""The work of a task: fetch a range, decode it, yield Arrow record batches."""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from penstock.errors import KafkaError
from penstock.record.batch import CorruptBatch
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.decode.columns import DecodedColumns, PartitionColumns, RecordBounds
from penstock.spark.decode.decoder import NATIVE, Decoder
from penstock.spark.decode.visible import VisibleBatches
from penstock.spark.options import MAX_INT64, MIN_INT64
from penstock.spark.source.fetch import READ_AHEAD, RangeFetch
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.read_ahead import ahead
from penstock.spark.source.settings import SourceSettings, ValueSettings

Completed = Callable[[DecodedColumns], pa.RecordBatch]
_SCRATCH_BYTES: Final = 2 << 20


def read_range(
    wanted: OffsetRange,
    settings: SourceSettings,
    *,
    oldest_ms: int = MIN_INT64,
    newest_ms: int = MAX_INT64,
) -> Iterator[pa.RecordBatch]:
    """All records of the range in order, between the given timestamps."""
    bounds = RecordBounds(wanted.start, wanted.end, oldest_ms, newest_ms)
    decoder = Decoder(bounds, with_headers=settings.with_headers)
    columns = PartitionColumns(*wanted.topic_partition, with_headers=settings.with_headers)
    completed: Completed = columns.completed
    if settings.value is not None:
        completed = _with_fields(completed, settings.value)
    # The native decoder is done with a payload before the next one: one buffer serves for all.
    scratch = bytearray(_SCRATCH_BYTES) if NATIVE else None
    with BlockingClient(settings.client) as client:
        fetch = RangeFetch(client, wanted, settings.fetch, fail=settings.fail_on_data_loss)
        for start, records, aborted, done in ahead(iter(fetch), READ_AHEAD, fetch.close):
            if start > decoder.wanted.first:
                # A batch is fetched whole; its deleted records must not come back.
                decoder.wanted = decoder.wanted._replace(first=start)
            batches = VisibleBatches(
                decoder.wanted, aborted, check_crcs=settings.fetch.check_crcs, scratch=scratch
            )
            try:
                for decoded in decoder.decode(records, batches, plain=not aborted):
                    yield completed(decoded)
            except KafkaError as error:
                raise CorruptBatch(f"{wanted.topic_partition}: {error}") from None
            done()
        for decoded in decoder.rest():
            yield completed(decoded)


def _with_fields(completed: Completed, value: ValueSettings) -> Completed:
    """Adds the fields of the values as the last column."""
    decode = _decoder(value)

    def with_fields(decoded: DecodedColumns) -> pa.RecordBatch:
        batch = completed(decoded)
        return batch.append_column("fields", decode(batch.column("value")))

    return with_fields


def _decoder(value: ValueSettings) -> Callable[[pa.Array], pa.Array]:
    if value.registry:
        from penstock.spark.confluent import values  # late: rarely needed

        return values.decoder(value.format, value.schema, value.registry, value.subject)
    from penstock.spark.avro.schema import record_type
    from penstock.spark.avro.values import decoder

    return decoder(record_type(value.schema))
