"""A controller in office: its term, the image that it keeps, and those who hear of changes."""

from collections.abc import Iterable

from penstock.controller.change import Brokers, PartitionChange, StateChange, StoppedReplicas
from penstock.controller.term import Term
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.metadata.store import MetadataStore


class Office:
    """What the controller's parts share. Used by one operation at a time."""

    def __init__(
        self, store: MetadataStore, term: Term, image: ClusterImage, brokers: Brokers
    ) -> None:
        self.store, self.term, self.image, self._brokers = store, term, image, brokers

    async def announce(
        self,
        delta: ImageDelta,
        *,
        partitions: Iterable[PartitionChange] = (),
        stopped: Iterable[StoppedReplicas] = (),
        topic_configs: Iterable[str] = (),
        broker_configs: bool = False,
    ) -> None:
        """Take what was written into the image, and let the brokers carry it out."""
        self.image = self.image.apply(delta)
        change = StateChange(
            image=self.image,
            partitions=tuple(partitions),
            stopped=tuple(stopped),
            topic_configs=tuple(topic_configs),
            broker_configs=broker_configs,
        )
        await self._brokers.apply(change)
