# SPDX-License-Identifier: Apache-2.0
"""Tests the four files of a load report with three faults: the HTML page in headless Chromium, and
the numbers in all files.

    WRITER ─▶ JSON ─▶ signalbox load merge ─▶ HTML, JSON, JUnit, .hdr
                                               ├▶ Chromium, 400 and 1,400 pixels wide
                                               └▶ Chromium behind a proxy that counts

Usage: load_page_test.py SIGNALBOX WRITER [FOLDER for screenshots]

Without Chromium the test is skipped (77); with CI=true it fails.
"""
import json
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from framed_page import browser, measured, need_browser, photograph  # noqa: E402  (the line above adds its folder)

SIGNALBOX = WRITER = ""
SHOTS: Path | None = None
WIDTHS = (400, 1400)

# The elements that must lie inside the page. Elements in a scrolling box may be wider.
INSIDE = """!e.closest(".scroll, .u-wrap") || e.matches(".scroll, canvas")"""
PAINTED = """{painted: [...page.querySelectorAll("canvas")].map(canvas => canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value))}"""


class CountingProxy:
    """A proxy that records the browser's requests, and answers each with an error (502)."""

    def __enter__(self):
        self.asked = asked = []

        class Handler(BaseHTTPRequestHandler):
            def note(self):
                asked.append(self.path)
                self.send_error(502)

            do_GET = do_POST = do_HEAD = do_CONNECT = note

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def asked_by_page(self):
        """The requests without those that Chromium sends to Google of its own accord."""
        return [path for path in self.asked
                if not re.search(r"\.(google|googleapis|gvt1|gstatic)\.com[:/]", path)]

    def way_to(self, page: Path) -> list[str]:
        """The browser's arguments."""
        return [f"--proxy-server=127.0.0.1:{self.server.server_port}", "--proxy-bypass-list=<-loopback>",
                "--virtual-time-budget=5000", f"file://{page}"]


class LoadPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        example = cls.folder / "example.json"
        example.write_bytes(subprocess.run([WRITER], capture_output=True, check=True).stdout)
        cls.merged = subprocess.run(
            [SIGNALBOX, "load", "merge", example, "--html", cls.folder / "report.html", "--json", cls.folder / "report.json",
             "--junit", cls.folder / "report.xml", "--hdr", cls.folder / "report.hdr"], capture_output=True, text=True)
        cls.page = (cls.folder / "report.html").read_text(encoding="utf-8")
        cls.report = json.loads((cls.folder / "report.json").read_text(encoding="utf-8"))

    def test_the_exit_status_is_that_of_the_thresholds(self):
        self.assertEqual((1, ""), (self.merged.returncode, self.merged.stderr))
        self.assertIn("MISSED", self.merged.stdout)

    def test_all_is_there_and_nothing_sticks_out(self):
        for width in WIDTHS:
            with self.subTest(width=width):
                seen = measured(self.page, width, inside=INSIDE, more=PAINTED)
                self.assertEqual(width, seen["wide"])
                self.assertLessEqual(seen["scroll"], width)
                self.assertEqual([], seen["out"])
                self.assertEqual([True] * 7, seen["painted"], "four charts a side, but signalbox had no failures")
                for text in ("It did not hold", "kill orders-primary", "stop orders-primary", "delay <all> & 40 ms",
                             "connection reset <by> peer", "orders-secondary, priority 1", "drill.yaml", "uPlot"):
                    self.assertIn(text, seen["text"])
                for side in self.report["sides"]:
                    self.assertIn(str(side["failed"]), seen["text"])
                    for fault in side["faults"]:
                        self.assertIn(str(fault["lost"]), seen["text"])

    def test_the_page_asks_the_network_for_nothing(self):
        with CountingProxy() as proxy:
            picture = (SHOTS or self.folder) / "load.png"
            said = photograph(picture, "--window-size=1400,3600", *proxy.way_to(self.folder / "report.html"))
            self.assertEqual([], proxy.asked_by_page())
            self.assertEqual([], re.findall(r".*(?:Refused|violat|Uncaught).*", said))
            self.assertGreater(picture.stat().st_size, 50_000, "a picture of charts")
            control = self.folder / "control.html"
            control.write_text('<img src="http://counted.test/x.png">', encoding="utf-8")
            browser("--dump-dom", *proxy.way_to(control))
            self.assertIn("http://counted.test/x.png", proxy.asked_by_page(), "the proxy counts")

    def test_junit_and_hdr_have_the_numbers_of_the_json(self):
        suite = xml.etree.ElementTree.parse(self.folder / "report.xml").getroot().find("testsuite")
        found = {p.get("name"): int(p.get("value")) for p in suite.iter("property")}
        for side in self.report["sides"]:
            self.assertEqual(side["failed"], found[side["name"] + ".failed"])
            self.assertEqual(side["from_due"]["p99_ns"], found[side["name"] + ".p99_ns"])
        missed = [t for t in self.report["thresholds"] if t["is_missed"]]
        self.assertEqual(len(missed), len(suite.findall("testcase/failure")))
        lines = (self.folder / "report.hdr").read_text(encoding="utf-8").splitlines()
        for side in self.report["sides"]:
            own = [line.split(",") for line in lines if line.startswith(f"Tag={side['name']},")]
            self.assertEqual(60, len(own))
            self.assertAlmostEqual(side["from_due"]["max_ns"] / 1e6, max(float(line[3]) for line in own), places=5)


if __name__ == "__main__":
    need_browser()
    SIGNALBOX, WRITER = sys.argv[1:3]
    SHOTS = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    unittest.main(argv=sys.argv[:1])
