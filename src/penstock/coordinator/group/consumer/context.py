"""The context of an operation on a group of the consumer protocol."""

import msgspec

from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.group import GroupConfig
from penstock.coordinator.group.consumer.assignor.assignor import Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup, Topics
from penstock.coordinator.result import Now


class GroupContext(msgspec.Struct, frozen=True):
    """Settings, assignors, the cluster's topics, and the time."""

    config: GroupConfig
    settings: ConsumerGroupConfig
    """The settings of this group."""
    assignors: Assignors
    topics: Topics
    now: Now

    def is_seen_by(self, group: ConsumerGroup) -> bool:
        """Whether the group has looked at these topics, and recently enough.

        Regular expressions are matched again after a while even if no topic has changed: the
        members' authorizations can change.
        """
        interval_ms = self.config.group_consumer_regex_refresh_interval_ms
        is_recent = self.now.steady_ms < group.topics_seen_ms + interval_ms
        return group.topics_seen is self.topics and is_recent
