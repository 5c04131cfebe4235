"""Lets `python -m robo_eval` stand in for the `robo-eval` command."""

if __name__ == "__main__":
    try:
        from robo_eval.cli.app import main
    except KeyboardInterrupt:
        raise SystemExit(3) from None
    main()
