"""StreamsGroupTopologyKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupTopologyKey(Message):
    group_id: str = ""
