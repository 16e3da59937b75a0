"""`python -m eventlake`."""

from eventlake.cli.main import main

if __name__ == "__main__":
    main()
