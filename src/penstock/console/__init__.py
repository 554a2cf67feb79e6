"""The web console: a separate process that shows a cluster and talks to it as any client does."""
