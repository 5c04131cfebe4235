"""Which agents take part by name, and how others are brought in."""

from __future__ import annotations

from robo_eval.agents.registry import agent_names, load_policy, make_agent

__all__ = ["agent_names", "load_policy", "make_agent"]
