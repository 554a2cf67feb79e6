"""One module per API: the classes of its request and response. Imported on first use."""
