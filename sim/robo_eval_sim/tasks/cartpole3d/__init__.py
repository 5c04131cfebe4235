"""CartPole3D: a pole on a cart in a room full of balls."""
