"""`python -m peers.spark_archive`: makes the class-data archive for Spark's JVMs if it is
missing.
"""

import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from peers import archive
from peers.spark import CLASSES
from penstock.spark.pipeline.declared import update
from penstock.spark.pipeline.engine import local_engine
from penstock.spark.pipeline.flow import FlowContext, start_flow
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from penstock.spark.pipeline.project import load_project
from penstock.spark.pipeline.settings import catalog_settings, spark_settings

SPEC = "name: classes\nstorage: storage\nlibraries:\n  - glob: {include: 'v.sql'}\n"
VIEW = "create materialized view v as select x, count(*) as n from values ('a') as t(x) group by x"


def make(folder: Path) -> None:
    """Does what tests do most: a Connect session, a stream of a Python source, definitions."""
    classes = folder / "classes.jsa"
    for name, text in (("spark-pipeline.yml", SPEC), ("v.sql", VIEW), ("lines.txt", "a\nb\n")):
        (folder / name).write_text(text)
    project = load_project(folder)
    own = catalog_settings(project.storage, persistent=True)
    own |= {"spark.driver.extraJavaOptions": " ".join(archive.write(classes))}
    with local_engine(spark_settings("classes", "local[1]", own, {}), lambda _: None) as engine:
        flow = FlowSpec(
            name="lines",
            source=From(files="lines.txt"),
            sql="select file, value from {source} where value > ''",
            to=To(parquet="lake"),
        )
        place = FlowContext("127.0.0.1:1", folder, project.storage, {"availableNow": True})
        for query in start_flow(engine.spark, flow, place):
            query.awaitTermination()
        update(engine.spark, project, lambda _: None)
        engine.spark.range(9).selectExpr("id % 2 as k").groupBy("k").count().collect()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # ends the JVM, which then writes the archive
    gateway.proc.wait(300)
    classes.rename(CLASSES)


if __name__ == "__main__":
    if not CLASSES.exists():
        print("install-peers: archiving the classes of Spark", flush=True)
        with tempfile.TemporaryDirectory(dir=CLASSES.parent) as made_in:
            make(Path(made_in))
