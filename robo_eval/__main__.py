"""Lets `python -m robo_eval` stand in for the `robo-eval` command."""

from robo_eval.cli.app import main

if __name__ == "__main__":
    main()
