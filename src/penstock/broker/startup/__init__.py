"""What a start finds on disk and in the store, and what it decides to do."""
