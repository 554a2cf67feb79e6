"""`penstock sql`: SQL queries on topics, run by Spark."""

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock.cli.frame.command import Verb
from penstock.cli.output import print_json, print_table
from penstock.cli.pipeline import reported_failures, stoppable
from penstock.cli.remote import Remote, remote
from penstock.cli.spark import spark_part
from penstock.client.cluster import Client
from penstock.errors import ConfigError
from penstock.spark.avro.schema_file import schema_text
from penstock.spark.pipeline.flow_spec import PLAIN
from penstock.spark.pipeline.settings import pairs


@click.command(cls=Verb, example="penstock sql 'select * from `my-topic` limit 10'")
@click.argument("query")
@remote
@click.option("--follow", is_flag=True, help="Also print new rows, until Ctrl-C.")
@click.option(
    "--values",
    "format_name",
    type=click.Choice(PLAIN),
    help="Format of the values. [JSON if they look like it, else text]",
)
@click.option(
    "--schema", help="Schema of the values: 'id int, name string'; Avro: JSON or a file .avsc."
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv", "parquet", "text", "wide", "yaml"]),
    default="table",
    show_default=True,
)
@click.option("--output", "path", metavar="FOLDER", help="Folder for --format parquet.")
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark.")
def sql(
    query: str,
    remote: Remote,
    follow: bool,
    format_name: str | None,
    schema: str | None,
    output: str,
    path: str | None,
    master: str,
    conf: tuple[str, ...],
) -> None:
    """Query topics by SQL: penstock sql 'select * from `my-topic` limit 10'.

    Columns are the fields of values, then key, value, topic, partition, offset and timestamp of
    the record, and _error if a value could not be read.
    """
    if (output == "parquet") != (path is not None):
        raise click.UsageError("--format parquet and --output need each other")
    if output == "parquet" and follow:
        raise click.UsageError("--follow prints rows; to write files, use a pipeline")
    settings = pairs(conf, "--conf")
    if schema is not None and format_name is None:
        raise click.UsageError("--schema needs --values")
    if format_name == "avro" and schema is not None:
        schema = schema_text(schema, Path())

    spark_query = spark_part("sql.query")  # checked first: without Spark no broker is needed

    async def names(client: Client) -> list[str]:
        return [each.name for each in await client.topics(None)]

    known = remote.run(names)
    topics = spark_part("sql.topic_view").mentioned(query, known)
    if not topics:
        offered = sorted(each for each in known if not each.startswith("__"))
        raise ConfigError(f"the query names no topic; there are {', '.join(offered) or 'none'}")
    with reported_failures(), stoppable():
        spark_query.run_query(
            spark_query.TopicQuery(
                sql=query,
                topics=topics,
                bootstrap=remote.bootstrap,
                master=master,
                conf=settings,
                value_format=None if format_name is None else (format_name, schema),
                follow=follow,
                parquet=path,
            ),
            Printer(output).emit,
        )


class Printer:
    """Prints a result on standard output."""

    def __init__(self, output: str) -> None:
        self._output, self._begun = output, False

    def emit(self, columns: Sequence[str], rows: list[Sequence[Any]]) -> None:
        match self._output:
            case "json":
                for row in rows:
                    click.echo(msgspec.json.encode(named(columns, row), enc_hook=str))
            case "yaml":
                for row in rows:
                    print_json(msgspec.to_builtins(named(columns, row), enc_hook=str))
            case "csv":
                writer = csv.writer(sys.stdout)
                if not self._begun:
                    writer.writerow(columns)
                writer.writerows([text(each) for each in row] for row in rows)
                sys.stdout.flush()
            case _:
                print_table(columns, [[text(each) for each in row] for row in rows])
        self._begun = True


def named(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    twice = [each for each, count in Counter(columns).items() if count > 1]
    if twice:
        raise ConfigError(
            f"several columns are called {twice[0]}; name them, as in: {twice[0]} as a"
        )
    return dict(zip(columns, row, strict=True))


def text(value: object) -> str:
    match value:
        case None:
            return ""
        case dict() | list():
            return msgspec.json.encode(value, enc_hook=str).decode()
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
