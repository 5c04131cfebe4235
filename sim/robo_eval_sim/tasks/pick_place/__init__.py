"""Pick a thing up and put it down at its goal."""
