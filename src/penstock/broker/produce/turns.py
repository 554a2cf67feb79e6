"""Produce requests that wait before they append: for the coordinator of their transaction, or for
other requests to get their turn.
"""

import msgspec

from penstock.broker.context import Context
from penstock.broker.produce.appending import Appending, TurnOverError
from penstock.broker.transaction.produce_verification import ProduceVerification
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
)


def copied(request: ProduceRequest) -> ProduceRequest:
    """A copy for a request that waits: its records are views of a buffer that is reused."""
    replace = msgspec.structs.replace

    def with_own_records(part: PartitionProduceData) -> PartitionProduceData:
        data = part.records
        if not isinstance(data, memoryview):
            return part
        return replace(part, records=memoryview(bytearray(data)))

    return replace(
        request,
        topic_data=[
            replace(topic, partition_data=[with_own_records(each) for each in topic.partition_data])
            for topic in request.topic_data
        ],
    )


def verification_of(request: ProduceRequest, ctx: Context) -> ProduceVerification:
    """Verifies the batches of a request with a transactional id."""
    services = ctx.services
    return ProduceVerification(
        request,
        ctx.version,
        services.coordination.verifier,
        services.cluster,
        services.replicas.partitions,
    )


async def verified(ctx: Context, verification: ProduceVerification) -> Context:
    """Wait until the transaction coordinator has answered: it is on another broker, or its record
    is not committed yet. The request is handled at a later time then.
    """
    await verification.wait()
    return msgspec.structs.replace(ctx, now_ms=ctx.services.resources.clock.now_ms())


async def append_rest(
    request: ProduceRequest, ctx: Context, appending: Appending
) -> ProduceResponse:
    """Append with other requests in between. They may end the transaction, so each turn verifies
    it.
    """
    appending.is_copied = True
    response = None
    while response is None:
        await appending.pause()
        verification = None if request.transactional_id is None else verification_of(request, ctx)
        appending.verification = verification
        try:
            if verification is not None:
                await verification.wait()
            response = appending.response(request)
        except TurnOverError:
            response = None
        finally:
            if verification is not None:
                verification.close()
    return response
