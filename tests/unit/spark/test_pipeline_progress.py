"""Spark's report of a micro-batch, translated to our own figures."""

from penstock.spark.pipeline.progress import COLUMNS, progress, row

EVENT = {
    "id": "u",
    "name": "minutes",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 3,
    "batchDuration": 250,
    "numInputRows": 100,
    "processedRowsPerSecond": 400.04,
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "sources": [
        {
            "endOffset": {"a": {"0": 5, "1": 7}},
            "latestOffset": '{"a": {"0": 9, "1": 7, "2": 3}}',
        },
        {"endOffset": {"logOffset": 0}, "latestOffset": None},
    ],
    "observedMetrics": {"expect:known": {"rows": 10, "broken": 2}, "other": {"x": 1}},
}


def test_lag_counts_records_after_the_batch_and_added_partitions() -> None:
    assert progress(EVENT).lag == 7


def test_sources_without_offsets_have_no_lag() -> None:
    assert progress({**EVENT, "sources": EVENT["sources"][1:]}).lag is None  # type: ignore[index]


def test_a_query_without_rows_yet_has_no_watermark_and_no_rate() -> None:
    found = progress(
        {
            **EVENT,
            "processedRowsPerSecond": float("nan"),
            "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        }
    )
    assert (found.watermark, found.rows_per_second) == (None, 0.0)


def test_a_row_has_a_cell_for_every_column() -> None:
    found = progress(EVENT)
    assert found.broken == {"known": 2}
    assert len(row(found)) == len(COLUMNS)
    assert row(found)[:6] == ("minutes", "3", "100", "400", "7", "250")
    assert row(found)[-1] == "known: 2"
