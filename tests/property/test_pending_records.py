"""Records of open transactions beside plain ones: the newest effective record wins."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.pending_records import PendingRecords
from penstock.coordinator.storage import RawRecord

KEYS = st.sampled_from([b"a", b"b"])
PRODUCERS = st.integers(1, 3)
PLAIN = st.tuples(st.just("plain"), KEYS)
TOMBSTONE = st.tuples(st.just("tombstone"), KEYS)
PENDED = st.tuples(st.just("pended"), PRODUCERS, KEYS)
ENDED = st.tuples(st.just("ended"), PRODUCERS, st.booleans())
EVENTS = st.lists(st.one_of(PLAIN, TOMBSTONE, PENDED, PENDED, ENDED), max_size=40)


@dataclass
class Model:
    """By offset: a record takes effect unless a later one with its key already has."""

    effective: dict[bytes, int] = field(default_factory=dict)
    open: dict[int, dict[bytes, int]] = field(default_factory=dict)

    def end(self, producer: int, committed: bool) -> None:
        for key, offset in self.open.pop(producer, {}).items():
            if committed and self.effective.get(key, -1) < offset:
                self.effective[key] = offset

    def tombstone(self, key: bytes) -> None:
        self.effective.pop(key, None)
        for pending in self.open.values():
            pending.pop(key, None)


@given(EVENTS)
def test_the_newest_record_takes_effect_whatever_the_order_of_markers(events: list[tuple]) -> None:  # type: ignore[type-arg]
    pending, effective, model = PendingRecords(), dict[bytes, int](), Model()
    for offset, event in enumerate(events):
        match event:
            case ("plain", key):
                pending.supersede(RawRecord(key, b"%d" % offset))
                effective[key] = model.effective[key] = offset
            case ("tombstone", key):
                pending.supersede(RawRecord(key, None))
                effective.pop(key, None)
                model.tombstone(key)
            case ("pended", producer, key):
                pending.add(producer, RawRecord(key, b"%d" % offset))
                model.open.setdefault(producer, {})[key] = offset
            case ("ended", producer, committed):
                for raw in pending.end(producer, committed=committed):
                    effective[raw.key] = int(raw.value or b"")
                model.end(producer, committed)
            case _:
                raise AssertionError(event)
        assert effective == model.effective
        held = {key for each in model.open.values() for key in each}
        assert {raw.key for raw in pending} == held


def test_one_offset_committed_often_in_a_transaction_is_one_pending_record() -> None:
    """Otherwise the end of the transaction would compare all pairs: minutes for 100,000, while the
    loop is blocked.
    """
    pending = PendingRecords()
    for number in range(1000):
        pending.add(1, RawRecord(b"a", b"%d" % number))
        pending.add(2, RawRecord(b"a", b"%d" % number))
    assert list(pending) == [RawRecord(b"a", b"999")] * 2
    assert pending.end(1, committed=True) == [RawRecord(b"a", b"999")]
    assert pending.end(2, committed=True) == [RawRecord(b"a", b"999")]
    assert list(pending) == []
