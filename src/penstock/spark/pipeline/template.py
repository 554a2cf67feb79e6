"""What `penstock pipeline init` writes: a project that runs as it is."""

from pathlib import Path

from penstock.errors import ConfigError

SPEC = """\
# Spark Declarative Pipelines: https://spark.apache.org/docs/latest/declarative-pipelines-programming-guide.html
name: {name}
storage: pipeline-storage
configuration:
  spark.sql.shuffle.partitions: "4"
libraries:
  - glob:
      include: transformations/**
"""

OWN = """\
# What Penstock adds. Flows copy between topics, files, tables and lakes without any code.
bootstrap: 127.0.0.1:9092
topics: # made by a run where they are missing
  events: {partitions: 2}
  events-dead: {}
flows:
  - name: events-in
    from: {files: data/events.jsonl}
    to: {topic: events}
  - name: events-to-lake
    from: {topic: events, format: json, schema: "user string, action string, at timestamp"}
    sql: select *, date(at) as day from {source}
    expect:
      - {name: known user, condition: user is not null}
    dead_letters: events-dead
    to: {parquet: lake/events, partition_by: [day]}
"""

PYTHON = '''\
"""Events of a topic as a streaming table; rows without a user go to a dead-letter topic."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

from penstock.spark.pipeline.define import expect_or_drop, topic_source

source = topic_source(
    "events",
    format="json",
    schema="user string, action string, at timestamp",
    group="{name}",
    dead_letters="events-dead",
)


@dp.table
@expect_or_drop("known user", "user is not null", dead_letters="events-dead")
def events() -> DataFrame:
    return source()
'''

SQL = """\
CREATE MATERIALIZED VIEW actions_per_user AS
SELECT user, count(*) AS actions, max(at) AS last_seen
FROM events
GROUP BY user
"""

EVENTS = """\
{"user": "ann", "action": "view", "at": "2026-01-01T10:00:00Z"}
{"user": "ann", "action": "buy", "at": "2026-01-01T10:05:00Z"}
{"user": "bob", "action": "view", "at": "2026-01-02T09:00:00Z"}
{"action": "view", "at": "2026-01-02T09:30:00Z"}
"""


def write_project(directory: Path, name: str) -> list[Path]:
    if directory.exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory}: is not empty; give the name of a new folder")
    files = {
        "spark-pipeline.yml": SPEC.replace("{name}", name),
        "penstock.yml": OWN,
        "transformations/events.py": PYTHON.replace("{name}", name),
        "transformations/actions_per_user.sql": SQL,
        "data/events.jsonl": EVENTS,
        ".gitignore": "pipeline-storage/\n.penstock/\nlake/\n",
    }
    for path, text in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return [directory / each for each in files]
