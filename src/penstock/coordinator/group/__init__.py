"""Consumer groups and their offsets. Pure: time and member ids are arguments."""
