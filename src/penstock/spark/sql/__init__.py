"""Questions about topics, from the command line or a shell."""
