"""One episode of the balancing agent in a world it was not made for."""

import gymnasium

from robo_eval.agents import make_agent

env = gymnasium.make("RoboEval/CartPole3D-v0", level=1, difficulty="hard")
agent = make_agent("balancer")
observation, info = env.reset(seed=7)
agent.reset(seed=7)
performance, over = 0.0, False
while not over:
    observation, reward, terminated, truncated, info = env.step(agent.act(observation))
    performance += float(reward)
    over = terminated or truncated
print(f"performance {performance:.3f}: {performance * 200:.0f} of 200 ticks balanced, n=1")
env.close()
