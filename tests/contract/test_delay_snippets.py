"""The programs of docs/delay.md in other languages, each run as printed inside a `main`."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.programs import HERE, node_program
from peers.jars import NotInstalledError, cache, classpath, program
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records

AHEAD_MS = 5000
PAGE = Path(__file__).parents[2] / "docs" / "delay.md"

JAVA = """
import static java.nio.charset.StandardCharsets.UTF_8;
import java.util.Map;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Snippet {
  public static void main(String[] args) {
    long atMs = System.currentTimeMillis() + 5000;
    Map<String, Object> config = Map.of("bootstrap.servers", args[0]);
    var text = new StringSerializer();
    try (var producer = new KafkaProducer<String, String>(config, text, text)) {
%s
    }
  }
}
"""
GO = """
package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, at := context.Background(), time.Now().Add(5*time.Second)
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		panic(err)
	}
%s
	if err := client.Flush(ctx); err != nil {
		panic(err)
	}
}
"""
JS = """
const { Kafka } = require('kafkajs')
async function main() {
  const atMs = Date.now() + 5000
  const producer = new Kafka({ brokers: [process.argv[2]] }).producer()
  await producer.connect()
%s
  await producer.disconnect()
}
main().catch((error) => { console.error(error); process.exit(1) })
"""


def java(text: str, folder: Path) -> list[str]:
    (folder / "Snippet.java").write_text(JAVA % text)
    return [program("java"), "-cp", classpath("clients-4.4.0"), str(folder / "Snippet.java")]


def go(text: str, folder: Path) -> list[str]:
    own = cache() / "go" / "bin" / "go"
    found = str(own) if own.exists() else shutil.which("go")
    if found is None:
        raise NotInstalledError("go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go" / name, folder)
    (folder / "main.go").write_text(GO % text)
    settings = ["GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=mod"]
    return [program("env"), "-C", str(folder), *settings, found, "run", "."]


def node(text: str, folder: Path) -> list[str]:
    (folder / "main.js").write_text(JS % text)
    return [*node_program("kafkajs")[:-1], str(folder / "main.js")]


@pytest.mark.peer
@pytest.mark.parametrize(("kind", "command"), [("java", java), ("go", go), ("js", node)])
def test_a_program_of_the_page_schedules_records(
    kind: str, command: Callable[[str, Path], list[str]], tmp_path: Path
) -> None:
    (text,) = re.findall(rf"(?s)```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"))
    began_ms = time.time() * 1000
    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        broker.create_topic("later", configs={"penstock.delay.to": "orders"})
        by_time = {"penstock.delay.to": "orders", "penstock.delay.by": "timestamp"}
        broker.create_topic("timed", configs=by_time)
        done = subprocess.run(
            [*command(text, tmp_path), broker.bootstrap],
            env={**os.environ, "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (later,) = all_records(broker.bootstrap, "later")
        (timed,) = all_records(broker.bootstrap, "timed")
    assert later.value() == timed.value() == b"wake up"
    names = [each[0] for each in later.headers() or ()]
    assert names in (["penstock-deliver-at"], ["penstock-delay-ms"])
    assert timed.timestamp()[1] >= began_ms + AHEAD_MS
