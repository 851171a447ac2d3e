"""``python -m ringleader``: the command line, where its script is not on the path."""

from ringleader.cli import main

if __name__ == "__main__":
    main()
