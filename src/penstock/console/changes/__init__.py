"""What the console can change, a file for each subject."""
