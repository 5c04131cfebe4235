"""Open or close a drawer."""
