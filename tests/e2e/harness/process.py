"""A program under test: started, followed line by line, ended by its own pid, its output kept for the report.

Nothing waits without a deadline. Deadlines grow with VERBENA_E2E_PATIENCE (1 by default; the runner sets more for
builds with a sanitizer), never with hope.
"""

import os
import shlex
import signal
import subprocess
import threading
import time

PATIENCE = float(os.environ.get("VERBENA_E2E_PATIENCE", "1"))


class Failed(AssertionError):
    """A program that did not do as it should; the message holds its command line and output."""


class Process:
    """One child process. `argv` is started as it stands; `env` is added to a small, fixed environment."""

    def __init__(self, argv, env=None, cwd="/"):
        self.argv = [str(word) for word in argv]
        self.lines = []
        self._changed = threading.Condition()
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                       "HOME": "/nonexistent", "PYTHONUNBUFFERED": "1", **(env or {})}
        self._child = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
                                       cwd=cwd, start_new_session=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._child.pid

    def _read(self):
        for line in self._child.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def running(self):
        return self._child.poll() is None

    def say(self, line):
        """Writes one line to its standard input."""
        try:
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"it no longer reads its input\n{self.describe()}") from None

    def wait_line(self, start, seconds=20, since=0):
        """The first line from number `since` on that begins with `start`."""
        deadline = time.monotonic() + seconds * PATIENCE
        with self._changed:
            while True:
                for line in self.lines[since:]:
                    if line.startswith(start):
                        return line
                ended = not self._reader.is_alive() and not self.running()
                left = deadline - time.monotonic()
                if ended or left <= 0:
                    why = "it ended" if ended else f"{seconds * PATIENCE:.0f} s passed"
                    raise Failed(f"no line '{start}...': {why}\n{self.describe()}")
                self._changed.wait(min(left, 0.5))

    def last_line(self, start):
        with self._changed:
            return next((line for line in reversed(self.lines) if line.startswith(start)), None)

    def finish(self, seconds=30, status=0):
        """Waits for its end; fails where it takes longer or ends with another status (None: any). Returns its output."""
        try:
            self._child.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f"still running after {seconds * PATIENCE:.0f} s\n{self.describe()}") from None
        self._reader.join(5)
        if status is not None and self._child.returncode != status:
            raise Failed(f"ended with {self._child.returncode} instead of {status}\n{self.describe()}")
        return self.output()

    def returncode(self):
        return self._child.poll()

    def kill(self, number=signal.SIGKILL):
        """Sends a signal to this one process."""
        if self.running():
            os.kill(self._child.pid, number)

    def stop(self):
        """Ends it and what it started (its own session), whatever state it is in."""
        if self.running():
            try:
                os.killpg(self._child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._child.wait(10)
        self._reader.join(5)
        for stream in (self._child.stdin, self._child.stdout):
            try:
                stream.close()
            except (BrokenPipeError, OSError):
                pass

    def output(self):
        with self._changed:
            return "\n".join(self.lines)

    def describe(self):
        state = "running" if self.running() else f"exit {self._child.returncode}"
        return f"--- pid {self.pid}, {state}: {shlex.join(self.argv)}\n{self.output()}\n---"


def eventually(condition, seconds=10, what="the condition"):
    """Calls `condition` until it gives something true, which is returned; fails after the deadline."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not so after {seconds * PATIENCE:.0f} s; last seen {value!r}")
        time.sleep(0.05)
