"""The self-contained HTML report and the files beside it."""
