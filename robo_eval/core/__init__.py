"""The nouns every other room speaks: plan, episode, estimate, policy and their errors."""
