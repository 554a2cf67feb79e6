"""Which tests share a process when `pytest -n 2 --dist loadfile` runs two at a time.

Tests of a file stay together because they share servers. Files that would disturb each other are
one group, so that they never run at the same time. The longest parts come first: at its end, a run
waits for the part that was started last.
"""

from pathlib import PurePath
from typing import Final

from xdist.scheduler import LoadScopeScheduling

GROUPS: Final = {
    # Each keeps two cores busy, and Spark waits no more than ten seconds for its Python workers.
    "spark": ("test_pipeline_*.py", "test_spark_*.py", "test_sql_command.py"),
    # Three brokers under load, with short timeouts.
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
    """Parts known to be long come first, the others in the order of collection."""
    names = [PurePath(part).name for part in waiting]
    return next((waiting[names.index(each)] for each in LONGEST if each in names), waiting[0])


class PartScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Assigns whole parts, each to the process that becomes free."""

    def _split_scope(self, nodeid: str) -> str:
        return part_of(nodeid)

    def _assign_work_unit(self, node: object) -> None:
        self.workqueue.move_to_end(next_part(list(self.workqueue)), last=False)
        super()._assign_work_unit(node)
