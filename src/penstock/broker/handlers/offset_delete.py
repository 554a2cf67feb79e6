"""OffsetDelete (key 47, v0): delete offsets of a group, for topics that none of its members read.

Refused: groups that do not exist; partitions that do not exist; topics that members read.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, code_for
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(
    request: OffsetDeleteRequest, ctx: Context
) -> OffsetDeleteResponse | Parked[OffsetDeleteResponse]:
    image = ctx.services.cluster.image
    wanted = tuple(
        topic_partition
        for topic in request.topics
        for part in topic.partitions
        if image.partition(topic_partition := TopicPartition(topic.name, part.partition_index))
    )
    pending = ctx.services.coordination.groups.delete_offsets(request.group_id, wanted)

    def respond(replies: list[tuple[Refused, ...] | KafkaError]) -> OffsetDeleteResponse:
        (reply,) = replies
        if isinstance(reply, KafkaError):
            return OffsetDeleteResponse(error_code=reply.code)
        codes = dict(zip(wanted, map(code_for, reply), strict=True))
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=part.partition_index,
                            error_code=codes.get(
                                TopicPartition(topic.name, part.partition_index),
                                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            ),
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answered([pending], respond, ctx)
