"""`python -m cutaway` is the `cutaway` command."""

from cutaway.cli import main

main()
