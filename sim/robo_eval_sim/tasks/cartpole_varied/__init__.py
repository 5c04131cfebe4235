"""CartPoleVaried: Gymnasium's CartPole with other parameters."""
