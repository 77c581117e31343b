"""The paper's figures, tables and claims, from a clone: `python -m paper figure-sorting`."""
