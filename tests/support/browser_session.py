# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a test controls: it opens addresses, follows links, goes back, and takes
pictures.

    Session ─ JSON, each text ended by a NUL ─▶ the browser's descriptors 3 and 4 (--remote-debugging-pipe)

The DevTools protocol goes over pipes, so neither a port nor a library for WebSockets is needed.
"""
import base64
import fcntl
import json
import os
import select
import signal
import subprocess
import tempfile
import time

from framed_page import CHROMIUM, PATIENCE

ABOVE_THREE_AND_FOUR = 10


class HasNavigated(AssertionError):
    """The page went to another address while a script ran in it."""


class Session:
    """A running browser, which ends at close() or at the end of a `with` block. `errors` has the
    errors that the browser reported, such as violations of the CSP."""

    def __init__(self, width: int = 1400, height: int = 1000) -> None:
        self.errors: list[str] = []
        self._profile = tempfile.TemporaryDirectory()
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        held = [fcntl.fcntl(end, fcntl.F_DUPFD, ABOVE_THREE_AND_FOUR) for end in (commands, answers)]

        def place() -> None:
            os.dup2(held[0], 3)
            os.dup2(held[1], 4)

        self._process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
             f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=place, start_new_session=True)
        for end in (commands, answers, *held):
            os.close(end)
        self._unread = b""
        self._number = 0
        self._page = None
        self._page = self._attach()
        for domain in ("Page", "Log"):
            self.tell(f"{domain}.enable")

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._remove_profile()

    def _remove_profile(self) -> None:
        """Tries again on an error: a child process of the browser may still finish a write."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._profile.cleanup()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def open(self, address: str) -> None:
        """Opens an address as if a user had typed it."""
        failed = self.tell("Page.navigate", url=address, transitionType="typed").get("errorText")
        if failed:
            raise AssertionError(f"{address}: {failed}")
        self._wait_until_loaded(address)

    def follow(self, link: str) -> None:
        """Clicks the first link with this href."""
        target = self.evaluate(f"""(() => {{
            const link = document.querySelector('a[href="{link}"]');
            if (link !== null) setTimeout(() => link.click(), 0);
            return link === null ? null : link.href;
        }})()""")
        if target is None:
            raise AssertionError(f"{self.address()} has no link to {link}")
        self._wait_until_loaded(target)

    def go(self, steps: int) -> None:
        """Moves in the history: -1 is the button "back", 1 is "forward"."""
        history = self.tell("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] + steps]
        self.tell("Page.navigateToHistoryEntry", entryId=entry["id"])
        self._wait_until_loaded(entry["url"])

    def address(self) -> str:
        return self.evaluate("location.href")

    def text(self) -> str:
        return self.evaluate("document.body.innerText")

    def picture(self) -> bytes:
        """A PNG of the visible part of the page."""
        return base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"])

    def evaluate(self, script: str):
        answer = self.tell("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def tell(self, method: str, **parameters) -> dict:
        """Sends a command of the DevTools protocol. Returns its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._page is not None:
            command["sessionId"] = self._page
        os.write(self._to, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            said = self._read(deadline)
            if said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.errors.append(said["params"]["entry"]["text"])
            if said.get("id") == self._number:
                if "error" in said:
                    has_navigated = "navigated" in said["error"]["message"]
                    raise (HasNavigated if has_navigated else AssertionError)(f"{method}: {said['error']}")
                return said["result"]

    def _attach(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for target in self.tell("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return self.tell("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            time.sleep(0.05)
        raise AssertionError("the browser has opened no page")

    # A page from the browser's cache causes no load event, so the state of the page is polled.
    def _wait_until_loaded(self, address: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._is_loaded(address):
            if time.monotonic() > deadline:
                raise AssertionError(f"{address} is not loaded: the browser is at {self.address()}")
            time.sleep(0.02)

    def _is_loaded(self, address: str) -> bool:
        try:
            return self.evaluate("[location.href, document.readyState]") == [address, "complete"]
        except HasNavigated:
            return False

    def _read(self, deadline: float) -> dict:
        while b"\0" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            part = os.read(self._from, 1 << 16) if select.select([self._from], [], [], left)[0] else b""
            if not part:
                raise AssertionError("the browser does not answer, or has ended")
            self._unread += part
        text, _, self._unread = self._unread.partition(b"\0")
        return json.loads(text)
