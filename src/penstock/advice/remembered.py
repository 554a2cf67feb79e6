"""Caches data that repeated snapshots need not request each time."""

from collections.abc import Sequence
from typing import Final

from penstock.advice.unread_times import UnreadTimes
from penstock.client.cluster import Client
from penstock.client.configs import topic_settings
from penstock.errors import KafkaError

MIN_ISR: Final = "min.insync.replicas"
FRESH_MS: Final = 60_000


class Remembered:
    """Caches timestamps of records, which do not change, and topic settings, which seldom do."""

    def __init__(self) -> None:
        self.times = UnreadTimes()
        self._min_isr: dict[str, int] = {}
        self._since_ms = 0

    def forget_settings(self) -> None:
        """Drop cached settings, after a change."""
        self._min_isr.clear()

    async def min_isr(
        self, client: Client, topics: Sequence[str], now_ms: int, failed_requests: list[str]
    ) -> dict[str, int]:
        """min.insync.replicas by topic. Requested for new topics at once, for all once a minute: it
        was half the time of a look at 2,000 topics.
        """
        if now_ms - self._since_ms >= FRESH_MS:
            self._min_isr, self._since_ms = {}, now_ms
        known = {each: self._min_isr[each] for each in topics if each in self._min_isr}
        try:
            asked = [each for each in topics if each not in known]
            for topic, value in (await topic_settings(client, asked, MIN_ISR)).items():
                if isinstance(value, KafkaError):
                    failed_requests.append(str(value))
                else:
                    known[topic] = int(value or 1)
        except KafkaError as error:
            failed_requests.append(str(error))
        self._min_isr = known
        return dict(known)
