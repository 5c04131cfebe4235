"""The steps from one schema version to the next."""
