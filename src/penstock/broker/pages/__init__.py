"""What a broker tells over HTTP, and the page of APIs that it serves."""
