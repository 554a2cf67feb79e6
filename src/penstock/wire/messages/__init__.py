"""One module per API, with its request and response; imported on first use."""
