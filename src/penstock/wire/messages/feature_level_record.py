"""FeatureLevelRecord; written by codegen."""

from penstock.wire.schema import Message, int16


class FeatureLevelRecord(Message):
    name: str = ""
    feature_level: int16 = 0
