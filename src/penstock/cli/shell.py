"""`penstock shell`: Python with a Spark session and topics as DataFrames."""

import code

import click

from penstock.cli.frame.command import Verb
from penstock.cli.pipeline import reported_failures
from penstock.cli.remote import Remote, remote
from penstock.cli.spark import spark_part
from penstock.spark.pipeline.settings import pairs

BANNER = """\
spark          the session
topic(NAME)    a topic's records, with fields of JSON values as columns; for other
               formats add values="avro", schema="order.avsc"
stream(NAME)   the same as a stream
F              pyspark.sql.functions
"""


@click.command(cls=Verb, example="penstock shell")
@remote
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark.")
def shell(remote: Remote, master: str, conf: tuple[str, ...]) -> None:
    """Open PySpark with everything configured; end it with Ctrl-D."""
    interactive = spark_part("sql.interactive")
    with (
        reported_failures(),
        interactive.session("penstock shell", master, pairs(conf, "--conf")) as spark,
    ):
        code.interact(BANNER, local=interactive.names(spark, remote.bootstrap), exitmsg="")
