"""`python -m migrate`, the same as the `mm2-migrate` command."""

from migrate.cli.main import main

if __name__ == "__main__":
    main()
