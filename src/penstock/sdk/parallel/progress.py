"""Tracks which records of a partition are finished, out of order. Pure.

Offsets are kept as bits, in pages of 65,536: a page costs 8 KB while it has gaps and nothing once
it is full. So one record that hangs for hours, with ten million finished behind it, costs little.

Offsets that a log leaves out (compaction, transaction markers) count as finished: records arrive in
order, so `start` sees the gaps.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

PAGE: Final = 1 << 16
PAGE_BYTES: Final = PAGE // 8


class _Page:
    """Bits of finished offsets; `bits` is None once all are."""

    __slots__ = ("bits", "count", "is_changed")

    def __init__(self) -> None:
        self.bits: bytearray | None = bytearray(PAGE_BYTES)
        self.count = 0
        self.is_changed = True

    def add(self, at: int) -> None:
        if self.bits is None or self.bits[at >> 3] >> (at & 7) & 1:
            return
        self.bits[at >> 3] |= 1 << (at & 7)
        self.count += 1
        self.is_changed = True
        if self.count == PAGE:
            self.bits = None

    def fill(self) -> None:
        self.bits, self.count, self.is_changed = None, PAGE, True

    def forget_from(self, at: int) -> bool:
        """Mark everything from this position on as unfinished; returns whether it changed."""
        full = (1 << PAGE) - 1
        bits = full if self.bits is None else int.from_bytes(self.bits, "little")
        kept = bits & ((1 << at) - 1)
        if kept == bits:
            return False
        self.bits, self.count = bytearray(kept.to_bytes(PAGE_BYTES, "little")), kept.bit_count()
        self.is_changed = True
        return True

    def has(self, at: int) -> bool:
        return self.bits is None or bool(self.bits[at >> 3] >> (at & 7) & 1)

    def first_gap(self, at: int) -> int:
        """The first unfinished position from `at` on; PAGE if there is none."""
        if self.bits is None:
            return PAGE
        while at < PAGE:
            if not at & 7 and self.bits[at >> 3] == 0xFF:
                at += 8
            elif self.bits[at >> 3] >> (at & 7) & 1:
                at += 1
            else:
                return at
        return PAGE


@dataclass(frozen=True, slots=True)
class PageState:
    """A page as it is saved; `bits` of None: every offset is finished."""

    number: int
    bits: bytes | None


class LaneProgress:
    """Progress of one partition, from its assignment until it is revoked."""

    def __init__(self, base: int | None = None, pages: Iterable[PageState] = ()) -> None:
        self._base = base
        """All offsets before it are finished; None until the first record arrives."""
        self._reached = base
        """The first offset not received yet."""
        self._pages: dict[int, _Page] = {}
        for each in pages:
            page = self._pages[each.number] = _Page()
            page.bits = None if each.bits is None else bytearray(each.bits)
            page.count = PAGE if each.bits is None else int.from_bytes(each.bits).bit_count()
            page.is_changed = False
        if base is not None:
            self._advance(base)

    @property
    def base(self) -> int | None:
        """The offset to commit: the first that is not finished."""
        return self._base

    def is_behind(self, offset: int) -> bool:
        """Whether the offset came before: records arrive in order, so this is another log."""
        return self._reached is not None and offset < self._reached

    def start(self, offset: int) -> bool:
        """Note a received record; returns whether it still has to be handled."""
        if self._base is None or self._reached is None:
            self._base = self._reached = offset
        if offset >= self._reached:
            self._fill(self._reached, offset)
            self._reached = offset + 1
        return not self.is_finished(offset)

    def give_back(self, offset: int) -> None:
        """Expect the records from here on once more; finished ones stay finished."""
        if self._reached is not None:
            self._reached = min(self._reached, offset)

    def finish(self, offset: int) -> None:
        """Mark a record as finished: it is not handled again."""
        assert self._base is not None, "a record is started before it is finished"
        if offset < self._base:
            return
        if offset == self._base:
            self._advance(offset + 1)
        else:
            self._add(offset)

    def forget_from(self, offset: int) -> bool:
        """Mark everything from here on as unfinished; returns whether anything was finished. Call
        it before the first record is received.
        """
        had_some = False
        for number, page in list(self._pages.items()):
            kept = offset - number * PAGE
            if kept < PAGE and page.forget_from(max(kept, 0)):
                had_some = True
            if not page.count:
                del self._pages[number]
        if self._base is not None and self._reached is not None and self._base > offset:
            # Pages newer than the commit may have advanced the base.
            had_some = had_some or self._base > self._reached
            self._base = max(offset, self._reached)
        return had_some

    def is_finished(self, offset: int) -> bool:
        assert self._base is not None
        page = self._pages.get(offset // PAGE)
        return offset < self._base or (page is not None and page.has(offset % PAGE))

    def next_unfinished(self, offset: int) -> int:
        """The first unfinished offset from here on: where to read next."""
        assert self._base is not None
        offset = max(offset, self._base)
        while (page := self._pages.get(offset // PAGE)) is not None:
            at = page.first_gap(offset % PAGE)
            offset = offset - offset % PAGE + at
            if at < PAGE:
                break
        return offset

    def pages(self) -> Iterator[PageState]:
        """The pages with something finished, in order."""
        for number in sorted(self._pages):
            bits = self._pages[number].bits
            yield PageState(number, None if bits is None else bytes(bits))

    def changed(self) -> list[int]:
        """Numbers of the pages that changed since the last `mark_saved`."""
        return [number for number, page in self._pages.items() if page.is_changed]

    def mark_saved(self) -> None:
        for page in self._pages.values():
            page.is_changed = False

    @property
    def size_bytes(self) -> int:
        """Size of the bits in memory."""
        return sum(len(page.bits or b"") for page in self._pages.values())

    def _add(self, offset: int) -> None:
        number = offset // PAGE
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = _Page()
        page.add(offset % PAGE)

    def _fill(self, start: int, end: int) -> None:
        """Mark a range in which the log has no records as finished."""
        assert self._base is not None
        if start == self._base:
            if end > start:
                self._advance(end)
            return
        while start < end:
            number, at = divmod(start, PAGE)
            page = self._pages.setdefault(number, _Page())
            if at == 0 and end - start >= PAGE:
                page.fill()
                start += PAGE
            else:
                page.add(at)
                start += 1

    def _advance(self, base: int) -> None:
        """Everything before `base` is finished; also skips finished offsets that follow it."""
        self._base = base
        if self._pages:
            self._base = self.next_unfinished(base)
            for number in [each for each in self._pages if (each + 1) * PAGE <= self._base]:
                del self._pages[number]
