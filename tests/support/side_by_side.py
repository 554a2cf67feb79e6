"""Which tests share a process when `pytest -n 2 --dist loadfile` runs two at a time.

Tests of a file stay together, for they share servers. Files that would hinder each other are
one group, so that they never run at the same time. The longest parts come first: a run waits at
its end for whatever was begun last.
"""

from pathlib import PurePath
from typing import Final

from xdist.scheduler import LoadScopeScheduling

GROUPS: Final = {
    # Each keeps two cores busy, and Spark gives its Python workers no more than ten seconds.
    "spark": ("test_pipeline_*.py", "test_spark_*.py", "test_sql_command.py"),
    # Three brokers under load, whose time-outs are short.
    "faults": ("test_cluster_faults.py", "test_cluster_judges.py"),
}
LONGEST: Final = ("spark", "faults", "test_differential.py", "test_clients_copying.py")


def part_of(nodeid: str) -> str:
    """The group of a test, or else its file."""
    file = nodeid.partition("::")[0]
    for group, patterns in GROUPS.items():
        if any(PurePath(file).match(pattern) for pattern in patterns):
            return group
    return file


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
