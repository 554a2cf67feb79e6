"""The columns in which `penstock topic empty` and `trim` show what they deleted."""

from penstock.cli.output import Column

COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("START", "before"),
    Column("NEW START", "after"),
    Column("DELETED", "deleted"),
)
