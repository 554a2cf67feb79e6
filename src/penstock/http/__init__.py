"""The one small HTTP server: metrics and health."""
