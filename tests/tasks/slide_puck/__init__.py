"""A second, tiny task: a puck on two slides is pushed to a corner."""
