"""`python -m keima` is the `keima` command."""

from keima.cli.main import main

if __name__ == "__main__":
    main()
