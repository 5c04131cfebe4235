"""PyBullet worlds, environments with novelty levels, and the runner that plays them."""
