"""What is asked of groups: functions that read a shard and decide, and change nothing."""
