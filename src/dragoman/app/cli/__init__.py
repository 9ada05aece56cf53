"""The command line. What a command needs is loaded when it runs, so that `--help` costs next to nothing."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that was typed, and end the process with its exit code."""
    import gc

    # A command line lives too short for collections while it imports; a node turns them on again.
    gc.disable()
    from .program import run

    run()
