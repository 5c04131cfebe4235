"""Agents that play the tasks of the arm."""
