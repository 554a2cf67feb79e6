"""ZkMigrationStateRecord; written by codegen."""

from penstock.wire.schema import Message, int8


class ZkMigrationStateRecord(Message):
    zk_migration_state: int8 = 0
