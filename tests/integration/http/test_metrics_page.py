"""The metrics page over HTTP, of a broker with very many partitions."""

import asyncio
from collections.abc import Iterator

from penstock.http.prometheus import Metric, MetricKind, Sample, labels, metrics
from penstock.http.server import serving
from support.metrics_page import parsed


def test_the_loop_keeps_running_while_ten_thousand_partitions_are_rendered() -> None:
    def partitions() -> Iterator[Sample]:
        for number in range(10_000):
            yield Sample(number, labels(topic=f"topic-{number // 10}", partition=str(number % 10)))

    table = {"kafka_topic_partition_current_offset": Metric(MetricKind.GAUGE, "End.", partitions)}

    async def main() -> tuple[str, int]:
        turns = 0
        routes = {("GET", "/metrics"): metrics(lambda: table)}
        async with asyncio.TaskGroup() as group, serving(group, routes) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            page = group.create_task(reader.read())
            while not page.done():
                turns += 1
                await asyncio.sleep(0)
            writer.close()
        return page.result().decode(), turns

    answer, turns = asyncio.run(main())
    head, body = answer.split("\r\n\r\n", 1)
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert len(parsed(body)["kafka_topic_partition_current_offset"][2]) == 10_000
    assert turns > 5
