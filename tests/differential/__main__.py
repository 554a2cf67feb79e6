"""`python -m differential [kafka]`: every difference as text, most frequent API first."""
