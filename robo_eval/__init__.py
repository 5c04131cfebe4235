"""Evaluation of embodied robots: episode logs, metrics with intervals, analyses and reports."""

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    # Looked up only when asked for: reading package metadata costs more than the command line
    # may take to answer `--help`.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        from robo_eval.core.errors import DISTRIBUTION

        try:
            return version(DISTRIBUTION)
        except PackageNotFoundError:  # an unpacked archive that was never installed
            return "0.0.0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
