"""The checker of share groups and delay topics: each history here is bad in exactly one way."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from faults.checker import violations
from faults.history import Accepted, Arrived, Delayed, Given, History, Polled, Queue
from faults.queue_checker import delay_violations
from faults.telling import events, queue_events

FINAL = [Polled(0, 0, "a"), Polled(0, 1, "b"), Polled(1, 0, "c")]


def good() -> Queue:
    """`b` comes again, since the first member dies with it; offset 2 is a marker."""
    return Queue(
        [
            Given("one", 0, 0, "a", 100),
            Given("one", 0, 1, "b", 110),
            Given("two", 0, 1, "b", 9000),
            Given("two", 1, 0, "c", 9001),
        ],
        [
            Accepted("one", 0, 0, 120),
            Accepted("two", 0, 1, 9100),
            Accepted("two", 1, 0, 9100),
            Accepted("two", 0, 2, 9100),
        ],
    )


def nobody_got_it(queue: Queue) -> None:
    del queue.given[3], queue.accepted[2]


def nobody_got_the_first(queue: Queue) -> None:
    del queue.given[0], queue.accepted[0]


def nobody_could_accept(queue: Queue) -> None:
    del queue.accepted[1]


def nobody_could_accept_it_again(queue: Queue) -> None:
    queue.refused.append(Accepted("one", 0, 1, 120))
    del queue.accepted[1]


def aborted(queue: Queue) -> None:
    queue.given.append(Given("one", 0, 2, "x", 130))


def beyond_the_end(queue: Queue) -> None:
    queue.given.append(Given("one", 2, 0, "x", 130))


def another_value(queue: Queue) -> None:
    queue.given[2] = Given("two", 0, 1, "a", 9000)


def again(queue: Queue) -> None:
    queue.given.append(Given("two", 0, 0, "a", 9000))


def again_to_the_same_member(queue: Queue) -> None:
    queue.given.append(Given("two", 1, 0, "c", 20_000))


def stranger(queue: Queue) -> None:
    queue.accepted[0] = Accepted("two", 0, 0, 120)


def accepted_twice(queue: Queue) -> None:
    queue.accepted.append(Accepted("one", 0, 1, 9050))


def accepted_again(queue: Queue) -> None:
    queue.accepted.append(Accepted("two", 1, 0, 9900))


BAD: list[tuple[Callable[[Queue], None], set[str]]] = [
    (nobody_got_it, {"share-lost"}),
    (nobody_got_the_first, {"share-lost"}),
    (nobody_could_accept, {"share-unaccepted"}),
    (nobody_could_accept_it_again, {"share-unaccepted"}),
    (aborted, {"share-phantom"}),
    (beyond_the_end, {"share-phantom"}),
    (another_value, {"share-other"}),
    (again, {"share-again"}),
    (again_to_the_same_member, {"share-again"}),
    (stranger, {"share-stranger"}),
    (accepted_twice, {"share-accepted-twice"}),
    (accepted_again, {"share-accepted-twice"}),
]


def kinds(queue: Queue) -> set[str]:
    return {each.kind for each in violations(History(final=FINAL, queues={"q": queue}))}


def test_a_good_share_group_breaks_nothing() -> None:
    assert kinds(good()) == set()


def test_a_failed_acknowledgement_may_have_been_stored() -> None:
    queue = good()
    del queue.accepted[1]
    queue.refused.append(Accepted("two", 0, 1, 9100))
    assert kinds(queue) == set()


@pytest.mark.parametrize(("spoil", "found"), BAD, ids=[each[0].__name__ for each in BAD])
def test_a_bad_share_group_is_named(spoil: Callable[[Queue], None], found: set[str]) -> None:
    queue = deepcopy(good())
    spoil(queue)
    assert kinds(queue) == found


def on_time() -> Delayed:
    """It is unknown whether `c` and `d` were written; `c` was."""
    return Delayed(
        {"a": 1000, "b": 2000, "c": 1500, "d": 1600},
        {"c", "d"},
        [Arrived("a", 1000.0), Arrived("c", 1700.0), Arrived("b", 5000.0)],
    )


def lost(delayed: Delayed) -> None:
    del delayed.arrived[2]


def first_lost(delayed: Delayed) -> None:
    del delayed.arrived[0]


def nothing_arrived(delayed: Delayed) -> None:
    delayed.arrived.clear()


def twice(delayed: Delayed) -> None:
    delayed.arrived.append(Arrived("a", 6000.0))


def twice_at_once(delayed: Delayed) -> None:
    delayed.arrived.insert(0, delayed.arrived[0])


def unknown_twice(delayed: Delayed) -> None:
    delayed.arrived.append(Arrived("c", 6000.0))


def early(delayed: Delayed) -> None:
    delayed.arrived[2] = Arrived("b", 1998.0)


def unknown_early(delayed: Delayed) -> None:
    delayed.arrived[1] = Arrived("c", 1000.0)


def never_sent(delayed: Delayed) -> None:
    delayed.arrived.append(Arrived("e", 3000.0))


def changed(delayed: Delayed) -> None:
    delayed.arrived[0] = Arrived("A", 1000.0)


DELAY_BAD: list[tuple[Callable[[Delayed], None], set[str]]] = [
    (lost, {"delay-lost"}),
    (first_lost, {"delay-lost"}),
    (nothing_arrived, {"delay-lost"}),
    (twice, {"delay-twice"}),
    (twice_at_once, {"delay-twice"}),
    (unknown_twice, {"delay-twice"}),
    (early, {"delay-early"}),
    (unknown_early, {"delay-early"}),
    (never_sent, {"delay-other"}),
    (changed, {"delay-lost", "delay-other"}),
]


def test_delayed_records_on_time_break_nothing() -> None:
    assert violations(History(delayed=[on_time()])) == []


@pytest.mark.parametrize(("spoil", "found"), DELAY_BAD, ids=[d[0].__name__ for d in DELAY_BAD])
def test_bad_deliveries_are_named(spoil: Callable[[Delayed], None], found: set[str]) -> None:
    delayed = on_time()
    spoil(delayed)
    assert {each.kind for each in delay_violations(delayed)} == found


MEMBER = """
{"timestamp":1,"name":"startup_complete"}
{"timestamp":3,"name":"record_data","key":null,"value":"9.0","topic":"t","partition":2,"offset":6}
{"timestamp":8,"name":"offsets_acknowledged","count":2,"partitions":[{"topic":"t","partition":2,"count":2,"offsets":[6,7]}],"success":true}
{"timestamp":9,"name":"offsets_acknowledged","count":1,"partitions":[{"topic":"t","partition":2,"count":1,"offsets":[8]}],"error":"no","success":false}
""".splitlines()


def test_kafkas_share_member_tells_what_it_gets_and_accepts() -> None:
    assert queue_events("m", events(MEMBER)) == Queue(
        given=[Given("m", 2, 6, "9.0", 3)],
        accepted=[Accepted("m", 2, 6, 8), Accepted("m", 2, 7, 8)],
        refused=[Accepted("m", 2, 8, 9)],
    )
