"""The source: reads are planned in the driver, fetched and decoded by tasks."""
