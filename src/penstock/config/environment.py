"""Reads settings from environment variables, named as in the Kafka images.

`KAFKA_LOG_SEGMENT_BYTES` is log.segment.bytes; `__` stands for an underscore, `___` for a dash.
`PENSTOCK_HTTP_LISTEN` is penstock.http.listen.
"""

import re
from collections.abc import Iterator, Mapping

# Variables that images and start scripts use for the JVM or themselves, and those that Kubernetes
# sets in every container of a namespace with a service named "kafka" or "penstock".
_NO_SETTING = re.compile(
    r"KAFKA_(HEAP_OPTS|OPTS|HOME|DIR|DEBUG|VERSION|JMX_.*|.*LOG4J_.*|JVM_PERFORMANCE_OPTS"
    r"|GC_LOG_OPTS|CLASSPATH|MODE|JAVA_.*|TOOLS_.*|CONFIG|DATA|PID_.*|ADVERTISED_HOST_NAME_COMMAND)"
    r"|PENSTOCK_CLIENT_.*|(KAFKA|PENSTOCK)_(PORT|PORT_[0-9]+_.*|SERVICE_HOST|SERVICE_PORT.*)"
)

_OF_OTHERS = frozenset(
    {
        "KAFKA_BOOTSTRAP_SERVERS",
        "KAFKA_BROKERS",
        "PENSTOCK_BOOTSTRAP",
        "PENSTOCK_CACHE",
        "PENSTOCK_COMMAND_CONFIG",
        "PENSTOCK_COMPARED",
        "PENSTOCK_ORACLE",
        "PENSTOCK_PROFILE",
        "PENSTOCK_PURE",
        "PENSTOCK_REWRITE",
        "PENSTOCK_SOAK",
        "PENSTOCK_ZOOKEEPER_CLASSPATH",
    }
)
"""Variables of clients, of Penstock's commands, and of its installation and tests."""

_MEANING = {"_": ".", "__": "_", "___": "-"}


def setting_names(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (variable, setting name) for the variables that hold settings."""
    for variable in environ:
        if variable in _OF_OTHERS or _NO_SETTING.fullmatch(variable):
            continue
        if variable.startswith("PENSTOCK_"):
            yield variable, _name(variable)
        elif variable.startswith("KAFKA_"):
            yield variable, _name(variable.removeprefix("KAFKA_"))


def _name(rest: str) -> str:
    return re.sub("_{1,3}", lambda found: _MEANING[found[0]], rest.lower())
