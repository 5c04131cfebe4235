"""The robo-eval command, one module a verb."""
