"""`python -m shapefix`."""

from shapefix.cli import main

if __name__ == "__main__":
    main()
