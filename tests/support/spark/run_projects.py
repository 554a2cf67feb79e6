"""Run projects one after the other in one Spark: run_projects BOOTSTRAP PROJECT..."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

from peers.spark import SHORT_LIVED
from penstock.spark.pipeline.declared import update
from penstock.spark.pipeline.engine import local_engine
from penstock.spark.pipeline.flow import FlowContext, start_flow
from penstock.spark.pipeline.progress import progress
from penstock.spark.pipeline.project import load_project
from penstock.spark.pipeline.settings import spark_settings

QUICK = {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    bootstrap, *folders = sys.argv[1:]
    os.environ["PENSTOCK_BOOTSTRAP"] = bootstrap
    settings = spark_settings("tests", "local[1]", QUICK, {})
    with ExitStack() as left:
        engine = left.enter_context(
            local_engine(settings, lambda event: print(progress(event), flush=True))
        )
        for folder in folders:
            project = load_project(Path(folder))
            place = FlowContext(
                bootstrap, project.directory, project.storage, {"availableNow": True}
            )
            for flow in project.own.flows:
                for query in start_flow(engine.spark, flow, place):
                    query.awaitTermination()
            if project.spec.libraries:
                update(engine.spark, project, print)
            print(f"done {project.spec.name}", flush=True)


if __name__ == "__main__":
    main()
