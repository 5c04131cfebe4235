"""Agents that play CartPole3D alone."""
