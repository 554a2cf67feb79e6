"""Finds which optional features a cluster uses; the console hides the pages of the others."""

import asyncio
import logging
from typing import Final

from penstock.console.waiting import has_waiting
from penstock.console.watch import ClusterWatch
from penstock.errors import KafkaError

EVERY_S: Final = 5.0
FIRST_S: Final = 0.2
AGAIN_MS: Final = 60_000
"""The interval of repeated checks. They read the settings of all topics, which costs as much as a
whole look on a large cluster.
"""
DELAY: Final = "delay"

logger = logging.getLogger(__name__)


async def follow_subjects(watch: ClusterWatch) -> None:
    """Check until cancelled."""
    subjects = Subjects(watch)
    while True:
        try:
            await subjects.follow()
        except KafkaError as error:
            logger.warning("the pages stay as they are: %s", error)
        await asyncio.sleep(FIRST_S if watch.last is None else EVERY_S)


class Subjects:
    """Checks when the set of topics changes, and otherwise once a minute."""

    def __init__(self, watch: ClusterWatch) -> None:
        self._watch = watch
        self._topics: frozenset[str] = frozenset()
        self._asked_ms: int | None = None

    async def follow(self) -> None:
        look, now_ms = self._watch.last, self._watch.now_ms()
        if look is None:
            return
        topics = frozenset(each.name for each in look.snapshot.topics)
        is_new = topics != self._topics or self._asked_ms is None
        if not is_new and now_ms - (self._asked_ms or 0) < AGAIN_MS:
            return
        found = {DELAY} if await has_waiting(self._watch, look) else set()
        self._watch.subjects = frozenset(found)
        self._topics, self._asked_ms = topics, now_ms
