"""`python -m dragoman` is `dragoman`."""

from .app.cli import main

if __name__ == "__main__":
    main()
