"""Agents that play CartPole and CartPoleVaried."""
