"""What the campaigns need of the machine: named loudly when it is not there, and a failure where all must be."""

from __future__ import annotations

import os
import subprocess

import pytest


@pytest.fixture(scope="session")
def strace() -> None:
    """strace is here and may trace."""
    try:
        done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
        problem = done.stderr.strip() if done.returncode else ""
    except OSError as wrong:
        problem = str(wrong)
    if problem:
        words = f"no strace, so no crash points and no power cuts: {problem}"
        if os.environ.get("CI") == "true":
            pytest.fail(words)
        pytest.skip(words)
