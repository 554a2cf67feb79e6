"""What authors of applications import; all else in Penstock may change without notice."""
