"""KRaftVersionRecord; written by codegen."""

from penstock.wire.schema import Message, int16


class KRaftVersionRecord(Message):
    version: int16 = 0
    k_raft_version: int16 = 0
