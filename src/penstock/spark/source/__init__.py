"""What a job reads: planned in the driver, fetched and decoded by tasks."""
