"""`python -m magnetite` runs the command line."""

from magnetite.cli import main

main()
