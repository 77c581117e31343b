"""Options of commands that use worker processes."""

RAY = (
    "Ray cluster whose processes do the work: its address, auto (the one that runs on this machine) or local (a new "
    "one on this machine); without it, processes of this machine."
)
"""Help of `--ray`."""

LISTED = 10
"""Number of failures that are printed; the manifest has all."""

FAILED = 3
"""Exit code if a part of the input failed and the rest was written."""
