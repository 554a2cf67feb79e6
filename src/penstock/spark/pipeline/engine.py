"""The Spark that runs a pipeline: a driver in this process, to which it connects by Spark Connect.

Declarative Pipelines exist only on Spark Connect, whose clients get no progress of their queries.
So progress comes from the driver's listener bus.
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

from penstock.spark.pipeline.driver_process import DriverProcess
from penstock.spark.pipeline.interrupt import restored_sigint
from penstock.spark.pipeline.quiet import quiet_end, quiet_start
from penstock.spark.pipeline.settings import elsewhere_environment, worker_environment

ProgressListener = Callable[[dict[str, Any]], None]
"""Called with the progress of a micro-batch, as in Spark's JSON, in a thread of the driver."""
CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # There is one user, who sends no files; with isolation, each query would start Python daemons.
    "spark.sql.artifact.isolation.enabled": "false",
}


@dataclass(frozen=True)
class Engine:
    """A session, and whether this process is its driver."""

    spark: SparkSession
    is_driver: bool


@contextmanager
def local_engine(
    settings: Mapping[str, str], listener: ProgressListener, *, elsewhere: bool = False
) -> Iterator[Engine]:
    """A driver in this process; `spark.master` says where its executors are. Once per process.

    `elsewhere`: the executors have their own Python.
    """
    os.environ.update(elsewhere_environment() if elsewhere else worker_environment())
    if settings.get("spark.driver.host") == "127.0.0.1":
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secrets.token_hex(16)
    with ExitStack() as left:
        conf = SparkConf().setAll([*{**CONNECT, **settings}.items()])
        with restored_sigint(), quiet_start(settings):
            context = SparkContext.getOrCreate(conf)
        gateway: Any = context._gateway  # noqa: SLF001 - nothing else has its process
        jvm = DriverProcess(gateway.proc)
        left.enter_context(jvm.told_if_lost())
        left.callback(jvm.while_alive, context.stop)
        left.callback(quiet_end, context)
        context.setLogLevel(settings.get("spark.log.level", "OFF"))
        left.enter_context(_listening(context, listener))
        # From here on Spark's functions treat this process as a client of its own driver.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        spark = _connected(f"sc://localhost:{_port(context)}")
        jvm.retry_while_alive(spark)
        # Before the server stops: a client that cannot release its session tries for ten minutes.
        left.callback(jvm.while_alive, spark.stop)
        yield Engine(spark, is_driver=True)


@contextmanager
def remote_engine(url: str) -> Iterator[Engine]:
    """An existing Spark Connect server."""
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
    jvm: Any = context._jvm  # noqa: SLF001 - nothing else tells the plugin's port
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


@contextmanager
def _listening(context: SparkContext, listener: ProgressListener) -> Iterator[None]:
    gateway: Any = context._gateway  # noqa: SLF001 - as Spark's own listeners in Python do
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    bus = context._jsc.sc()  # noqa: SLF001
    bus_listener = _BusListener(listener)
    bus.addSparkListener(bus_listener)
    try:
        yield
    finally:
        bus.removeSparkListener(bus_listener)


class _BusListener:
    """A listener on the driver's bus for the progress of queries."""

    def __init__(self, listener: ProgressListener) -> None:
        self._listener = listener

    def onOtherEvent(self, event: Any) -> None:  # noqa: N802 - Spark's name
        if event.getClass().getSimpleName() == "QueryProgressEvent":
            self._listener(msgspec.json.decode(event.progress().json()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on"):
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        """The Java interface, for py4j."""

        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)
