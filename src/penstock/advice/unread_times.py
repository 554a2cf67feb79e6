"""The timestamps of the next records of groups, for lag in time."""

from collections.abc import Sequence
from typing import Final

from penstock.client.cluster import Client
from penstock.client.record_times import RecordPosition, batches_at

MOST_A_LOOK: Final = 500


class UnreadTimes:
    """Requests each position once, because the record there does not change.

    One look requests at most `MOST_A_LOOK` positions; the others follow in later looks.
    """

    def __init__(self) -> None:
        self._known: dict[RecordPosition, int | None] = {}

    async def of(
        self, client: Client, wanted: Sequence[RecordPosition]
    ) -> dict[RecordPosition, int]:
        """Timestamps in ms, without positions whose record is gone or was not requested yet."""
        self._known = {each: self._known[each] for each in wanted if each in self._known}
        asked = [each for each in dict.fromkeys(wanted) if each not in self._known][:MOST_A_LOOK]
        if asked:
            found = await batches_at(client, asked)
            self._known |= {each: found[each].time_ms if each in found else None for each in asked}
        return {each: time for each, time in self._known.items() if time is not None}
