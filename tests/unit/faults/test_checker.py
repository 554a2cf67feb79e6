"""The checker detects violations: each history here is bad in exactly one way."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from faults.checker import violations
from faults.history import History, Polled, Sent, Transaction


def good() -> History:
    """Two partitions; offset 2 of the first is a marker, which consumers never see."""
    records = [
        Polled(0, 0, "a0", 3),
        Polled(0, 1, "t0", 3),
        Polled(0, 3, "a2", 4),
        Polled(1, 0, "a1", 0),
        Polled(1, 1, "t1", 0),
        Polled(1, 3, "unknown", 0),
    ]
    return History(
        sent={"a": [Sent("a0", 0, 0), Sent("a1", 1, 0), Sent("a2", 0, 3), Sent("lost", 1, None)]},
        transactions=[
            Transaction(("t0", "t1"), "committed"),
            Transaction(("u0", "u1"), "aborted"),
            Transaction(("v0", "v1"), "unknown"),
        ],
        polled={"live": records[:2] + records[3:5]},
        final=records,
    )


def without_final(value: str) -> Callable[[History], None]:
    def spoil(history: History) -> None:
        history.final = [each for each in history.final if each.value != value]
        history.polled.clear()

    return spoil


def acked_elsewhere(history: History) -> None:
    history.sent["a"][3] = Sent("unknown", 1, 7)


def read_and_gone(history: History) -> None:
    history.polled["live"].append(Polled(1, 9, "ghost", 0))


def twice(history: History) -> None:
    history.final.append(Polled(1, 4, "a0", 0))


def other_value(history: History) -> None:
    history.polled["live"][1] = Polled(0, 1, "other", 3)


def back(history: History) -> None:
    polled = history.polled["live"]
    polled.append(polled[0])


def skipped(history: History) -> None:
    del history.polled["live"][0]


def sent_back(history: History) -> None:
    sent = history.sent["a"]
    sent[0], sent[2] = sent[2], sent[0]


def aborted_read(history: History) -> None:
    history.final.append(Polled(1, 4, "u1", 0))


def aborted_for_a_moment(history: History) -> None:
    history.polled["early"] = [Polled(0, 0, "a0", 3), Polled(0, 1, "t0", 3), Polled(0, 2, "u0", 3)]


def torn(history: History) -> None:
    history.final.append(Polled(1, 4, "v1", 0))


def epoch_back(history: History) -> None:
    history.final[2] = Polled(0, 3, "a2", 2)


BAD: list[tuple[str, Callable[[History], None], set[str]]] = [
    ("acked and gone", without_final("a2"), {"lost-write"}),
    ("acked at another place", acked_elsewhere, {"lost-write"}),
    ("read and gone", read_and_gone, {"vanished", "poll-skip"}),
    ("there twice", twice, {"duplicate"}),
    ("two values", other_value, {"inconsistent-offsets"}),
    ("a consumer goes back", back, {"nonmonotonic-poll"}),
    ("a consumer skips", skipped, {"poll-skip"}),
    ("sent later, lies before", sent_back, {"nonmonotonic-send"}),
    ("aborted and read", aborted_read, {"aborted-read"}),
    ("aborted and read early", aborted_for_a_moment, {"aborted-read", "vanished"}),
    ("half of a committed one", without_final("t1"), {"lost-transaction"}),
    ("half of an unknown one", torn, {"torn-transaction"}),
    ("an older leader wrote later", epoch_back, {"leader-epoch-back"}),
]


def test_a_good_history_breaks_nothing() -> None:
    assert violations(good()) == []


@pytest.mark.parametrize(("spoil", "kinds"), [each[1:] for each in BAD], ids=[b[0] for b in BAD])
def test_a_bad_history_is_named(spoil: Callable[[History], None], kinds: set[str]) -> None:
    history = deepcopy(good())
    spoil(history)
    assert {each.kind for each in violations(history)} == kinds
