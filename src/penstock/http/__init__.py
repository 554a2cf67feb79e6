"""A small HTTP server for metrics, health checks and the broker's pages."""
