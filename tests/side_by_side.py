"""Which tests share a process when `pytest -n 2 --dist loadfile` runs two at a time.

Tests of a file stay together, for they share servers. Files that would hinder each other are
one group, so that they never run at the same time. The longest parts come first: a run waits at
its end for whatever was begun last.
"""

from pathlib import PurePath
from typing import Final

from xdist.scheduler import LoadScopeScheduling

GROUPS: Final = {
    # All use the one Spark session of a test process, and two cores bear one such JVM.
    "spark": {
        "test_spark_connector.py",
        "test_spark_sink.py",
        "test_spark_source.py",
        "test_pipeline_avro.py",
        "test_pipeline_flows.py",
        "test_pipeline_hdfs.py",
        "test_pipeline_lakes.py",
        "test_pipeline_mariadb.py",
    },
    # Three brokers under load, whose time-outs are short.
    "faults": {"test_cluster_faults.py", "test_cluster_judges.py"},
}
LONGEST: Final = ("spark", "faults")


def part_of(nodeid: str) -> str:
    """The group of a test, or else its file."""
    file = nodeid.partition("::")[0]
    name = PurePath(file).name
    return next((group for group, names in GROUPS.items() if name in names), file)


def next_part(waiting: list[str]) -> str:
    """Those that are known to be long come first, the others as they were collected."""
    names = [PurePath(part).name for part in waiting]
    return next((waiting[names.index(each)] for each in LONGEST if each in names), waiting[0])


class PartScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Whole parts go to whichever process has done its last one."""

    def _split_scope(self, nodeid: str) -> str:
        return part_of(nodeid)

    def _assign_work_unit(self, node: object) -> None:
        self.workqueue.move_to_end(next_part(list(self.workqueue)), last=False)
        super()._assign_work_unit(node)
