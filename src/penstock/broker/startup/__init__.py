"""Start-up of a broker: inspects disk and store, and decides whether to serve."""
