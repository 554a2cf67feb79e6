"""What all commands share: help, formats, connection, profiles, the terminal."""
