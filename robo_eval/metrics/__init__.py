"""Functions of episodes that return estimates with intervals."""
