"""The pages of the incident log."""
