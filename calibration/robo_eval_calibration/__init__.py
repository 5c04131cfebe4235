"""Finding the constants of a simulator in recordings of a robot, and how sure they are."""
