"""`make bench`: which sections are run, in which rounds, and where the answer is printed."""

import argparse
import json
import os
import platform
import sys
import time

import report
from book import Book
from durability import Seeded, first_answer, recovery
from goals import judged
from measures import client, gateway, imports, memory, stream, unary, versions
from processes import Failed, all_stopped_at_the_end

SECTIONS = tuple(report.SECTIONS)


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure our rows, the peers' and the floor, interleaved.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one cell")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {','.join(SECTIONS)}")
    parser.add_argument(
        "--quick", action="store_true", help="one short round: whether it runs, not how fast it is"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    asked = parser.parse_args()
    asked.sections = [name for name in SECTIONS if name in asked.only.split(",")]
    unknown = set(asked.only.split(",")) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if not 1 <= asked.rounds <= 100 or not 0.2 <= asked.seconds <= 60:
        parser.error("1 to 100 rounds of 0.2 to 60 seconds")
    if asked.quick:
        asked.rounds, asked.seconds = 1, 0.5
    return asked


def measure(book: Book, asked: argparse.Namespace) -> None:
    quick = asked.quick
    for turn in range(asked.rounds):
        tell(f"round {turn + 1} of {asked.rounds}")
        if "unary" in asked.sections:
            unary(book, turn, asked.seconds)
        if "stream" in asked.sections:
            stream(book, turn, asked.seconds, quick)
        if "client" in asked.sections:
            client(book, turn, asked.seconds)
        if "versions" in asked.sections:
            versions(book, turn, asked.seconds)
        if "gateway" in asked.sections:
            gateway(book, turn, asked.seconds)
        if "memory" in asked.sections and turn < 3:
            memory(book, turn, 2_000 if quick else 20_000)
        if "import" in asked.sections:
            imports(book, turn, 3 if quick else 10)
    _durability(book, asked)


def _durability(book: Book, asked: argparse.Namespace) -> None:
    seeded = Seeded(5_000 if asked.quick else 100_000)
    try:
        if "start" in asked.sections:
            tell("start")
            first_answer(book, seeded, asked.rounds)
        if "recovery" in asked.sections:
            tell("recovery")
            recovery(book, seeded, 50 if asked.quick else 300)
    finally:
        seeded.remove()


def tell(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def machine() -> dict:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": os.getloadavg()[0],
    }


def show(book: Book, asked: argparse.Namespace, about: dict) -> None:
    lines = judged(book, set(asked.sections))
    if asked.output == "json":
        print(json.dumps({"machine": about, **book.as_json(), "goals": lines}, indent=1))
        return
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for name in asked.sections:
        if any(key[0] == name for key in book.cells):
            print(f"\n{report.section(book, name)}")
    print(f"\n{report.goals(lines)}")
    if book.faults:
        print(f"\n{report.faults(book)}")


def main() -> int:
    asked, book = flags(), Book()
    about = {**machine(), "rounds": asked.rounds, "seconds": asked.seconds, "quick": asked.quick}
    begin = time.monotonic()
    try:
        with all_stopped_at_the_end():
            measure(book, asked)
    except Failed as problem:
        tell(str(problem))
        return 1
    about["took_seconds"] = round(time.monotonic() - begin)
    show(book, asked, about)
    return 1 if book.faults else 0


if __name__ == "__main__":
    sys.exit(main())
