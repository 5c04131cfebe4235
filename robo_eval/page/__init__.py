"""What pages and pictures are made of: they draw what they are given, and compute nothing."""
