"""Evaluation of embodied robots: episode logs, metrics with intervals, analyses and reports."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("robo-eval")
except PackageNotFoundError:  # running from an unpacked archive that was never installed
    __version__ = "0.0.0+unknown"

__all__ = ["__version__"]
