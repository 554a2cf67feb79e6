"""Share groups: members that share the records of partitions (KIP-932)."""
