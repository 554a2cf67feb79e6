"""RegisterBrokerRecord; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64, uint16


class BrokerEndpoint(Message):
    name: str = ""
    host: str = ""
    port: uint16 = 0
    security_protocol: int16 = 0


class BrokerFeature(Message):
    name: str = ""
    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class RegisterBrokerRecord(Message):
    broker_id: int32 = 0
    is_migrating_zk_broker: Annotated[bool, V("2+")] = False
    incarnation_id: Uuid = NO_UUID
    broker_epoch: int64 = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, V("1+")] = False
    log_dirs: Annotated[list[Uuid], V("3+", tag=0)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, V("4+", tag=1)] = None
