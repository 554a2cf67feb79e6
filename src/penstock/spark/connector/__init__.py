"""Sources and sinks of pipelines beside topics: growing files, tables of databases."""
