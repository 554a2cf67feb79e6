"""Records in the console: read, search, follow, export and produce them."""
