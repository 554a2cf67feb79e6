"""SQL queries on topics, from the command line or a shell."""
