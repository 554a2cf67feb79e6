"""VotersRecord; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32, uint16


class Endpoint(Message):
    name: str = ""
    host: str = ""
    port: uint16 = 0


class KRaftVersionFeature(Message):
    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class Voter(Message):
    voter_id: int32 = 0
    voter_directory_id: Uuid = NO_UUID
    endpoints: list[Endpoint] = []
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class VotersRecord(Message):
    version: int16 = 0
    voters: list[Voter] = []
