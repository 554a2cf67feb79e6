"""The sticky task assignor: assignments are even, and tasks stay where they can."""

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.coordinator.group.streams.assignor import sticky
from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import TaskAssignment, TaskId


def tasks(count: int) -> list[TaskId]:
    return [TaskId(str(index % 2), index // 2) for index in range(count)]


def wanted(count: int, standbys: int = 0) -> TopologyTasks:
    return TopologyTasks(tasks(count), frozenset({"0", "1"}), standbys)


def members(
    threads: list[int], held: dict[str, TaskAssignment] | None = None
) -> dict[str, StreamsSubscriber]:
    """Members with the same number of threads in each process."""
    return {
        f"{process}-{thread}": StreamsSubscriber(
            str(process), (held or {}).get(f"{process}-{thread}", TaskAssignment())
        )
        for process, count in enumerate(threads)
        for thread in range(count)
    }


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 12),
    st.integers(0, 2),
)
@example([3, 1], [1, 1, 3, 3], 5, 2)
def test_every_task_is_active_once_and_its_standbys_are_elsewhere(
    first: list[int], second: list[int], count: int, standbys: int
) -> None:
    held: dict[str, TaskAssignment] = {}
    before = held
    for threads in (first, second, second):
        before, joined = held, members(threads, held)
        held = sticky(joined, wanted(count, standbys))
        active = [task for each in held.values() for task in each.active]
        assert sorted(active) == sorted(tasks(count))
        sizes = [len(each.active) for each in held.values()]
        assert max(sizes) - min(sizes) <= 1
        copies = min(standbys, len(threads) - 1)
        for task in tasks(count):
            where = [joined[name].process_id for name, each in held.items() if task in each.tasks]
            assert len(where) == len(set(where)) == copies + 1
    assert held == before, "what is balanced does not move"


@given(st.integers(1, 12), st.integers(1, 5))
def test_a_new_member_gets_only_its_share(count: int, size: int) -> None:
    before = sticky(members([1] * size), wanted(count))
    after = sticky(members([1] * (size + 1), before), wanted(count))
    moved = [task for name, each in before.items() for task in each.active - after[name].active]
    assert len(moved) == len(after[f"{size}-0"].active)


def test_only_tasks_with_state_have_standbys() -> None:
    some = TopologyTasks(tasks(4), frozenset({"1"}), 1)
    held = sticky(members([1, 1]), some)
    held = sticky(members([1, 1], held), some)
    copies = [task for each in held.values() for task in each.standby]
    assert sorted(copies) == [TaskId("1", 0), TaskId("1", 1)]
