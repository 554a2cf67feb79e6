"""`kafka-delete-records.sh`: deletes the records before an offset."""

from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Table, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.partition_json import field, listed, read_json
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.types import Offset, TopicPartition

FILE = "offset-json-file"


def delete(args: Arguments) -> int:
    args.require(FILE)
    wanted = _read(args.text(FILE))
    run(args, partial(_delete, wanted))
    return 0  # 0 even if a partition failed, like Kafka's tool


def _read(path: str) -> "dict[TopicPartition, Offset]":
    from penstock.types import Offset, TopicPartition

    about = f"--{FILE} {path}"
    wanted: dict[TopicPartition, Offset] = {}
    twice = []
    for row in listed(read_json(path, FILE), "partitions", about):
        partition = TopicPartition(
            field(row, "topic", str, about), field(row, "partition", int, about)
        )
        if partition in wanted:
            twice.append(partition)
        wanted[partition] = Offset(field(row, "offset", int, about))
    if twice:
        raise ToolError(
            "Offset json file contains duplicate topic partitions: " + ",".join(map(str, twice))
        )
    return wanted


async def _delete(wanted: "dict[TopicPartition, Offset]", client: "Client") -> None:
    from penstock.client.errors import BrokerRefused
    from penstock.client.offsets import delete_records
    from penstock.kafka_tools.messages import exception_name, refusal_text

    print("Executing records delete operation")
    print("Records delete operation completed:")
    for partition, offset in wanted.items():
        try:
            (start,) = (await delete_records(client, {partition: offset})).values()
            print(f"partition: {partition}\tlow_watermark: {start}")
        except BrokerRefused as refused:
            print(
                f"partition: {partition}\terror: {exception_name(refused)}: {refusal_text(refused)}"
            )


TOOL = Tool(
    Table(
        "kafka-delete-records",
        "This tool helps to delete records of the given partitions down to the specified offset.",
        (*CLUSTER, text(FILE, "FILE", "Partitions and offsets, in JSON.", required=True)),
    ),
    delete,
)
