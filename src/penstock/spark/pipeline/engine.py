"""The Spark that runs a pipeline: a driver in this process that serves Spark Connect to it.

Declarative Pipelines exist on Spark Connect alone. The progress of their queries does not reach a
client of it, so it is taken from the driver's own listener bus.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from penstock.spark.pipeline.interrupt import kept_interrupt
from penstock.spark.pipeline.quiet import quiet_end, quiet_start
from penstock.spark.pipeline.settings import elsewhere_environment, worker_environment

Listener = Callable[[dict[str, Any]], None]
"""Is called with the progress of a micro-batch, as Spark's JSON has it; in a thread of its own."""
CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # One user, who sends no files: apart, each query would start Python daemons of its own.
    "spark.sql.artifact.isolation.enabled": "false",
}


@dataclass(frozen=True)
class Engine:
    """A session, and whether this process is its driver."""

    spark: SparkSession
    is_driver: bool


@contextmanager
def local_engine(
    settings: Mapping[str, str], listener: Listener, *, elsewhere: bool = False
) -> Iterator[Engine]:
    """A driver here; its executors are wherever `spark.master` says. One in a process's life.

    `elsewhere`: they bring a Python of their own.
    """
    os.environ.update(elsewhere_environment() if elsewhere else worker_environment())
    if settings.get("spark.driver.host") == "127.0.0.1":
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secrets.token_hex(16)
    with ExitStack() as left:
        conf = SparkConf().setAll([*{**CONNECT, **settings}.items()])
        with kept_interrupt(), quiet_start(settings):
            context = SparkContext.getOrCreate(conf)
        left.callback(context.stop)
        left.callback(quiet_end, context)
        context.setLogLevel(settings.get("spark.log.level", "OFF"))
        left.enter_context(_heard(context, listener))
        # From here on this process is a client of its own driver: so say Spark's functions.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        spark = _connected(f"sc://localhost:{_port(context)}")
        # Before the server ends: a client that cannot say goodbye tries it for ten minutes.
        left.callback(spark.stop)
        yield Engine(spark, is_driver=True)


@contextmanager
def remote_engine(url: str) -> Iterator[Engine]:
    """A Spark Connect server that somebody else runs."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    spark = _connected(url)
    try:
        yield Engine(spark, is_driver=False)
    finally:
        spark.stop()


def _connected(url: str) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # slow to import

    session: Any = RemoteSession.builder.remote(url).getOrCreate()
    return session  # type: ignore[no-any-return]  # Spark's two sessions have one interface


def _port(context: SparkContext) -> int:
    jvm: Any = context._jvm  # noqa: SLF001 - the port that the plugin took is told nowhere else
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


@contextmanager
def _heard(context: SparkContext, listener: Listener) -> Iterator[None]:
    gateway: Any = context._gateway  # noqa: SLF001 - as Spark's own listeners in Python do
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    bus = context._jsc.sc()  # noqa: SLF001
    ears = _Ears(listener)
    bus.addSparkListener(ears)
    try:
        yield
    finally:
        bus.removeSparkListener(ears)


class _Ears:
    """A listener of the driver's bus that cares for one kind of event."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def onOtherEvent(self, event: Any) -> None:  # noqa: N802 - Spark's name
        if event.getClass().getSimpleName() == "QueryProgressEvent":
            self._listener(msgspec.json.decode(event.progress().json()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on"):
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)
