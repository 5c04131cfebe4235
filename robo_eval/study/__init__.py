"""Studies of tests and agents: pools of small policies, and learners of mixtures, on any task."""
