"""`python -m magnetite` is the command line."""

from magnetite.cli import main

main()
