"""`python -m dcem`: the command line, where the script `dcem` is not on the path."""

from dcem.cli import main

main()
