"""Jars for Spark's pipelines: those of the fetched sets that Spark does not bring itself.

Two versions of one class would conflict, so only a few jars of each set are used, by name.
"""

from pathlib import Path
from typing import Final

from peers.jars import folder

KAFKA: Final = "spark-kafka-4.2.0"
AVRO: Final = "spark-avro-4.1.1"
DELTA: Final = "spark-delta-4.4.0"
_NEEDED: Final = {
    KAFKA: (
        "spark-sql-kafka-0-10",
        "spark-token-provider-kafka",
        "kafka-clients",
        "commons-pool2",
    ),
    AVRO: ("spark-avro",),
    DELTA: ("delta-", "unitycatalog-"),
}


def spark_jars(*sets: str) -> str:
    """The value of `spark.jars`."""
    found: list[Path] = []
    for each in sets or _NEEDED:
        jars = sorted(folder(each).glob("*.jar"))
        found += [path for path in jars if path.name.startswith(_NEEDED[each])]
    return ",".join(map(str, found))
