"""What a produce request appends, and what its response waits for."""
