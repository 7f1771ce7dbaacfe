"""``python -m keyquorum``: the command line."""

from keyquorum.cli import main

if __name__ == "__main__":
    main()
