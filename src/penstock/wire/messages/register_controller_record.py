"""RegisterControllerRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32, uint16


class ControllerEndpoint(Message):
    name: str = ""
    host: str = ""
    port: uint16 = 0
    security_protocol: int16 = 0


class ControllerFeature(Message):
    name: str = ""
    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class RegisterControllerRecord(Message):
    controller_id: int32 = 0
    incarnation_id: Uuid = NO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []
