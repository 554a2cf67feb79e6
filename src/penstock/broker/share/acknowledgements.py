"""Reads acknowledgements of requests: ranges, with one type for all or one for each record."""

from collections.abc import Iterable
from itertools import groupby
from typing import Protocol

from penstock.broker.share.errors import InvalidAcknowledgement
from penstock.broker.share.share_partition import Acknowledgement
from penstock.wire.enums import AcknowledgeType


class AcknowledgedRange(Protocol):
    """A batch of acknowledgements in a message."""

    @property
    def first_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def acknowledge_types(self) -> list[int]: ...


def acknowledgements(
    ranges: Iterable[AcknowledgedRange], *, may_renew: bool
) -> list[Acknowledgement]:
    """Ascending ranges of one type each; raises if the ranges are not in order."""
    found: list[Acknowledgement] = []
    after = -1
    for each in ranges:
        first, last, types = each.first_offset, each.last_offset, each.acknowledge_types
        if last < first:
            raise InvalidAcknowledgement(f"{first} to {last} is not a range of offsets")
        if first <= after:
            raise InvalidAcknowledgement(f"offset {first} is acknowledged after {after}")
        if len(types) not in {1, last - first + 1}:
            raise InvalidAcknowledgement(f"{len(types)} types for {last - first + 1} records")
        after = last
        highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not all(0 <= kind <= highest for kind in types):
            raise InvalidAcknowledgement(f"unknown type among {sorted(set(types))}")
        if len(types) == 1:
            found.append(Acknowledgement(first, last, AcknowledgeType(types[0])))
            continue
        for kind, same in groupby(types):
            size = len(list(same))
            found.append(Acknowledgement(first, first + size - 1, AcknowledgeType(kind)))
            first += size
    return found
