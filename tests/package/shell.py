# SPDX-License-Identifier: Apache-2.0
"""A shell for the tests of documents: it gets commands as a reader pastes them, and is asked for
the lines that a document says they print."""

import os
import signal
import subprocess
import time
from pathlib import Path

from installed import PATIENCE


class Shell:
    """A bash process that reads pasted text. The end of the `with` block ends it and all processes
    that it started."""

    def __init__(self, folder: Path, patience: float = PATIENCE, enter: tuple[object, ...] = (), seen_as: Path | None = None,
                 **environment: object) -> None:
        """`enter`: the program that runs bash, such as one that changes the root folder. `seen_as`:
        the folder's path there."""
        self.patience = patience
        self.log = folder / "shell.log"
        self.done = folder / "done"
        self.done_inside = (seen_as or folder) / "done"
        self.mark = 0  # The length of the output before the last block.
        env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
        work = folder / "work"
        work.mkdir(exist_ok=True)
        with self.log.open("wb") as log:
            self.bash = subprocess.Popen([*map(str, enter), "bash", "-e"], cwd=work, env=env, stdin=subprocess.PIPE, stdout=log,
                                         stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)  # The group has only bash and its processes.
        except ProcessLookupError:
            pass
        self.bash.stdin.close()
        self.bash.wait()

    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def paste(self, text: str) -> None:
        self.mark = len(self.printed())
        self.done.unlink(missing_ok=True)
        self.bash.stdin.write(f"{text}\n: > '{self.done_inside}'\n")
        self.bash.stdin.flush()
        self.until(self.done.exists, text)

    def expect(self, text: str) -> None:
        for line in text.splitlines():
            self.until(lambda: line.strip() in map(str.strip, self.printed()[self.mark:].splitlines()), line)

    def until(self, holds, what: str) -> None:
        deadline = time.monotonic() + self.patience
        while not holds():
            if self.bash.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"not so:\n{what}\nall that was printed:\n{self.printed()}")
            time.sleep(0.05)
