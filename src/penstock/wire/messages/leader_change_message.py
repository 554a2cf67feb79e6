"""LeaderChangeMessage; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32


class Voter(Message):
    voter_id: int32 = 0
    voter_directory_id: Annotated[Uuid, V("1+")] = NO_UUID


class LeaderChangeMessage(Message):
    version: int16 = 0
    leader_id: int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []
