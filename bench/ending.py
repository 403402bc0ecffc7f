#!/usr/bin/env python3
"""What a script begins ends with it, however it ends: by itself, by a signal, or killed.

    begun = Begun()
    subprocess.Popen(...)   # and all that this starts in turn
    begun.end()             # are killed

They are known by a word in their environment, which they inherit: a process that makes a session or a group of its own, or whose
parent has ended, has it, too. A guard, this file as a program, waits for the script's end by a pipe, and kills what is left then.
Where the system has no /proc (macOS) nobody is found so, and only what was started directly ends, by its group."""
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

VARIABLE = "BENCH_BEGUN_BY"
PATIENCE = 5.0  # seconds, for those that are being killed


def marked(mark):
    """The numbers of the processes that have the mark, but for this one."""
    word = f"{VARIABLE}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def end_marked(mark):
    """Kills them, and those that they start meanwhile. False: some are still there."""
    last = time.monotonic() + PATIENCE
    while found := marked(mark):
        if time.monotonic() > last:
            return False
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.01)
    return True


class Begun:
    def __init__(self):
        self.mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self.guard = subprocess.Popen([sys.executable, __file__, self.mark], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, start_new_session=True)
        os.environ[VARIABLE] = self.mark

    def end(self):
        return end_marked(self.mark)


def main():
    """The guard: signals that end a terminal's programs do not end it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_marked(sys.argv[1])


if __name__ == "__main__":
    main()
