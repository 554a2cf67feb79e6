"""Sources and sinks of pipelines other than topics: growing files, database tables."""
