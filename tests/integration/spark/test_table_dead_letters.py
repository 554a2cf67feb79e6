"""Rows that a table rejects, on a cluster whose clients log in."""

import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.spark.connector.table_source import TableSource
from penstock.spark.pipeline.dead_letter import connection_of
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_ann="secret";',
}
LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "ann",
    "kafka.sasl.password": "secret",
}
SCHEMA = StructType([StructField("id", IntegerType()), StructField("name", StringType())])


def test_dead_letters_are_written_with_the_flows_login(tmp_path: Path) -> None:
    file = tmp_path / "d.db"
    with sqlite3.connect(file) as database:
        database.execute("create table t (id integer primary key, name text not null)")
    database.close()
    with EmbeddedBroker(settings=SETTINGS) as broker:
        broker.create_topic("dead", 1)
        listeners = broker.running.state.listeners
        options = {
            "url": f"sqlite:///{file}",
            "table": "t",
            "key": "id",
            "deadLetters": "dead",
            "bootstrap": listeners["SASL_PLAINTEXT"],
        }
        writer = TableSource({**options, **LOGIN}).writer(SCHEMA, overwrite=False)
        assert "secret" not in repr(writer)
        writer.write(iter([Row(id=1, name="a"), Row(id=2, name=None)]))
        (letter,) = all_records(listeners["PLAINTEXT"], "dead")
        assert letter.value() == b'{"id":2,"name":null}'
    with pytest.raises(ConfigError, match=r"kafka\.sasl\.mechanism: GSSAPI is not supported"):
        TableSource({**options, "kafka.security.protocol": "SASL_SSL"}).writer(
            SCHEMA, overwrite=False
        )
    with pytest.raises(ConfigError, match="option bootstrap is missing"):
        TableSource({**options, "bootstrap": ""}).writer(SCHEMA, overwrite=False)


def test_only_connection_and_login_options_are_taken_from_the_flow() -> None:
    assert connection_of({**LOGIN, "groupId": "g", "kafka.fetch.max.bytes": "1"}) == LOGIN
