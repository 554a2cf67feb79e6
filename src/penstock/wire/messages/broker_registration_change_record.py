"""BrokerRegistrationChangeRecord; written by codegen."""

from typing import Annotated

from penstock.types import Uuid
from penstock.wire.schema import Message, V, int8, int32, int64


class BrokerRegistrationChangeRecord(Message):
    broker_id: int32 = 0
    broker_epoch: int64 = 0
    fenced: Annotated[int8, V("0+", tag=0)] = 0
    in_controlled_shutdown: Annotated[int8, V("1+", tag=1)] = 0
    log_dirs: Annotated[list[Uuid], V("2+", tag=2)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, V("3+", tag=3)] = None
