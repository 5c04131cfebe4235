"""Novelty levels of CartPole3D: one file a level, found by looking into this folder."""
