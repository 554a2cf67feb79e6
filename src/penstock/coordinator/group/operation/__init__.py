"""Operations on groups: functions that read a shard and return a result."""
