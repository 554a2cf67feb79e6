"""Spark over TLS and SCRAM, with our source and sink and with Spark's own."""

from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from peers.spark_session import spark_session
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_records_are_written_and_read_by_our_format_and_sparks(tmp_path: Path) -> None:
    keys = certified(tmp_path, "broker")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(keys.store),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with EmbeddedBroker(settings=settings) as broker, spark_session(tmp_path / "spark") as spark:
        listeners = broker.running.state.listeners
        admin = AdminClient({"bootstrap.servers": listeners["PLAINTEXT"]})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        new = UserScramCredentialUpsertion("bob", info, b"geheim")
        for future in admin.alter_user_scram_credentials([new]).values():
            future.result(20)
        options = {
            "kafka.bootstrap.servers": listeners["SASL_SSL"],
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(keys.certificate),
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f'{MODULE} required username="bob" password="geheim";',
        }
        for source in ("kafka", "penstock"):
            topic = f"by-spark-{source}"
            frame = spark.range(20).selectExpr("cast(id as string) as value")
            frame.write.format(source).mode("append").options(**options, topic=topic).save()
            read = spark.read.format(source).options(**options, subscribe=topic).load()
            assert sorted(int(row["value"]) for row in read.collect()) == list(range(20))
