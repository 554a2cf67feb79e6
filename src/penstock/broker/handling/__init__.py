"""What stands around a handler: forwarded to the controller, charged for, taken in turns."""
