"""Where each row's Python comes from: ours runs the bench, the others' are made here from their pins."""

import hashlib
import shutil
import sys
from pathlib import Path

from processes import Failed, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / ".bench"


def place() -> Path:
    """The bench's own folder; it ignores itself."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n")
    return PLACE


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, made when its pins are new."""
    pins = HERE / "peers" / f"{peer}.txt"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stamp = hashlib.sha256(version.encode() + pins.read_bytes()).hexdigest()[:12]
    folder = place() / "environments" / f"{peer}-{stamp}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"bench: making the environment of {peer}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, python, pins)
        (folder / "ready").touch()
    return str(python)


def _make(folder: Path, python: Path, pins: Path) -> None:
    uv = shutil.which("uv")
    if uv:
        try:
            run([uv, "venv", "-q", "--python", sys.executable, str(folder)], 120)
            run([uv, "pip", "install", "-q", "--python", str(python), "-r", str(pins)], 600)
            return
        except Failed as problem:
            print(f"bench: {problem}; trying pip", file=sys.stderr)
            shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(folder)], 120)
    run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(pins)], 900)


# What our rows are shown with every request, and would refuse without: limits are counted, though they are never met.
KEY = "bench-key-0123456789"


def ours() -> dict[str, str]:
    """The variables under which the checkout's own package is found and no task is thrown away."""
    return {
        "PYTHONPATH": str(ROOT / "src"),
        "DRAGOMAN_STORE_TASKS_MAX": "1000000",
        "DRAGOMAN_STORE_OWNER_ACTIVE_MAX": "1000000",
        "DRAGOMAN_AUTH_BEARER": KEY,
        "DRAGOMAN_LIMITS_CALLER_TOKENS_PER_MINUTE": "1000000000",
    }
