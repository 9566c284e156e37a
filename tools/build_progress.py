#!/usr/bin/env python3
"""Passes ninja's output on to a log, and says now and then how far the build is.

    ninja ... 2>&1 | tools/build_progress.py NAME LOG

For builds whose output nobody watches: a line on standard output after ten seconds and then every minute.
"""

import pathlib
import re
import sys
import time

FIRST, AGAIN = 10.0, 60.0
STEP = re.compile(r"^\[(\d+)/(\d+)\] ")


def follow(lines, log, name, say, now=time.monotonic):
    begin = now()
    due = begin + FIRST
    for line in lines:
        log.write(line)
        step = STEP.match(line)
        if step and now() >= due:
            say(f"tilewright: building {name}: {step[1]} of {step[2]} steps after {now() - begin:.0f} s")
            due = now() + AGAIN
    log.flush()


def main():
    name, path = sys.argv[1:]
    with pathlib.Path(path).open("w", encoding="utf-8", errors="replace") as log:
        sys.stdin.reconfigure(errors="replace")
        follow(sys.stdin, log, name, lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
