"""``python -m trial [NAME ...] [--seed N] [--count N]``: the long form of trials, all of them by default."""

from __future__ import annotations

import argparse
import sys
import time

from trial.modules import trials


def main() -> int:
    """Run trials and print what they counted. The exit code is 1 if anything failed."""
    known = trials()
    parser = argparse.ArgumentParser(prog="python -m trial", description="Random attempts to break holdfast.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="attempts; default: the long form of each trial")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"there is no trial {sorted(unknown)[0]!r}")
    failed = 0
    for name in arguments.names or known:
        began = time.perf_counter()
        tally = known[name].trial(arguments.count or known[name].LONG, arguments.seed)
        print(f"{name}: {tally} ({time.perf_counter() - began:.0f} s)", flush=True)
        for line in tally.failures[:20]:
            print(f"  {line}", flush=True)
        failed += len(tally.failures)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
