"""Groups of the classic protocol: JoinGroup and SyncGroup; one member assigns the partitions."""
