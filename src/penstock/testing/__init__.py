"""What tests of Penstock, and of applications on it, may build upon."""
