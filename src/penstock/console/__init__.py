"""The web console: a process of its own that shows a cluster, as any client sees it."""
