"""The robot's side: the guard, the recorder, the bridge and the conductor of a matched trial."""
