# SPDX-License-Identifier: Apache-2.0
"""Tests the admin pages of a demo in headless Chromium at three moments: healthy, failed over, and
recovered. Also tests the HTML page of `signalbox plan`.

    signalbox demo --admin ─▶ HTML, style ─▶ a frame of 400 and of 1,400 pixels, in light and dark ─▶ its text, and what sticks out
                                        ├──▶ the page itself, by its address: no refusal by its own policy
                                        └──▶ a browser that is driven: a picture of each moment, links, back
    signalbox plan --html ─▶ HTML ─▶ a frame of 420 and of 1,400 pixels, in light and dark ─▶ the same, and its colours

Usage: admin_browser_test.py SIGNALBOX [FOLDER for screenshots]

Without Chromium the test is skipped (77); with CI=true it fails.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
import framed_page  # noqa: E402  (the line above adds its folder)
from browser_session import Session  # noqa: E402
from framed_page import PATIENCE, need_browser, photograph  # noqa: E402

SIGNALBOX = ""
SHOTS: Path | None = None
WIDTHS = (400, 1400)
PLAN_WIDTHS = (420, 1400)
PLANNED = Path(__file__).parents[2] / "conf/plan/zones.yaml"
PAGES = ("/", "/clusters", "/priorities", "/certs")
ON_PRIORITY_1 = "orders of xds:///orders is on priority 1"

# The elements that must lie inside the page. Elements in a `.scroll` may be wider, and the headings
# of narrow tables are hidden (`position: absolute`). A chart (svg) is measured as a whole.
INSIDE = """(!e.closest("svg") || e.matches("main > svg")) && !e.closest(".scroll > *")
    && getComputedStyle(e).position !== 'absolute'"""
ROWS = '{rows: page.querySelectorAll("main > svg").length}'


def measured(page: str, style: str, width: int, dark: bool = False) -> dict:
    inlined = page.replace('<link rel="stylesheet" href="/style.css">', f"<style>{style}</style>")
    return framed_page.measured(inlined, width, inside=INSIDE, more=ROWS, dark=dark)


class Demo:
    def __enter__(self):
        self.process = subprocess.Popen([SIGNALBOX, "demo", "--seconds", "40", "--admin", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.read_until(r"admin pages on (\S+)").group(1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def read_until(self, pattern: str) -> re.Match:
        for line in self.process.stdout:
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"the demo ended before {pattern!r}")

    def get(self, page: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{page}", timeout=PATIENCE) as answer:
            return answer.read().decode()


def luminance(colour: str) -> float:
    """0 (black) to 255 (white), of a browser's "rgb(…)"."""
    red, green, blue = map(int, re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", colour).groups())
    return 0.299 * red + 0.587 * green + 0.114 * blue


def check_colours(test: unittest.TestCase, seen: dict, dark: bool) -> None:
    """Whether a dark page is dark, and a light page is light, and the text is readable on both."""
    text, ground = map(luminance, seen["colours"])
    test.assertEqual(dark, text > ground)
    test.assertGreater(abs(text - ground), 100, "readable")


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pictures: dict[str, bytes] = {}
        cls.pictured: dict[str, str] = {}  # The text of the page in the picture.
        with Session() as session, Demo() as demo:
            # A browser's first page can take longer than the demo's first act.
            session.open(f"http://{demo.address}/")

            def take_picture(moment: str) -> None:
                session.open(f"http://{demo.address}/")
                cls.pictured[moment] = session.text()
                cls.pictures[moment] = session.picture()
                if SHOTS:
                    (SHOTS / f"overview-{moment}.png").write_bytes(cls.pictures[moment])

            cls.style = demo.get("/style.css")
            demo.read_until(r"^ *2\.0 s ")
            cls.healthy = {page: demo.get(page) for page in PAGES}
            take_picture("healthy")
            demo.read_until("SIGKILL to orders-primary")
            demo.read_until(r" 100 % .* 1 ")  # All calls go to priority 1.
            cls.failed_over = {page: demo.get(page) for page in PAGES}
            take_picture("failed_over")
            demo.read_until("orders-primary comes back")
            demo.read_until(r" s +\d+ +100 % ")
            cls.back = {page: demo.get(page) for page in PAGES}
            take_picture("back")
            cls.history = cls.walk(session, f"http://{demo.address}")
            cls.complaints = session.errors
            cls.refusals = {}
            for page in PAGES:
                folder = SHOTS or Path(tempfile.mkdtemp())
                picture = folder / f"admin{page.replace('/', '-')}.png"
                said = photograph(picture, "--window-size=1400,1000", f"http://{demo.address}{page}")
                cls.refusals[page] = (picture.stat().st_size, re.findall(r".*(?:Refused|violat).*", said))
                if not SHOTS:
                    shutil.rmtree(folder)

    @staticmethod
    def walk(session: Session, demo: str) -> list[tuple[str, str]]:
        """Follows links and the browser's history. Returns address and text after each step."""
        seen = []
        for step in (lambda: session.open(f"{demo}/"), lambda: session.follow("/clusters"), lambda: session.go(-1),
                     lambda: session.go(1), lambda: session.go(-1), lambda: session.follow("/")):
            step()
            seen.append((session.address().removeprefix(demo), session.text()))
        return seen

    def moments(self):
        for moment in ("healthy", "failed_over", "back"):
            for page, text in getattr(self, moment).items():
                yield moment, page, text

    def test_nothing_sticks_out(self):
        for moment, page, text in self.moments():
            for width in WIDTHS:
                with self.subTest(moment=moment, page=page, width=width):
                    seen = measured(text, self.style, width)
                    self.assertEqual(width, seen["wide"])
                    self.assertLessEqual(seen["scroll"], width)
                    self.assertEqual([], seen["out"])
                    self.assertEqual([], seen["broken"], "words of tables that stand on two lines")
                    self.assertIn("system-ui", seen["font"], "the style applies")
                    self.assertIn("signalbox", seen["text"])

    def test_the_text_of_each_moment_is_there(self):
        for width in WIDTHS:
            healthy = measured(self.healthy["/"], self.style, width)["text"]
            self.assertIn("Nothing: every target can send calls.", healthy)
            self.assertIn("priority 0 orders-primary", healthy)
            failed = measured(self.failed_over["/"], self.style, width)["text"]
            self.assertIn(ON_PRIORITY_1, failed)
            self.assertIn("priority 1 orders-secondary", failed)
            back = measured(self.back["/"], self.style, width)["text"]
            self.assertIn("priority 0 orders-primary", back)
            clusters = measured(self.failed_over["/clusters"], self.style, width)["text"]
            self.assertIn("127.0.0.", clusters)
            self.assertIn("transient_failure", clusters)

    def test_the_timeline_is_drawn(self):
        for width in WIDTHS:
            seen = measured(self.back["/priorities"], self.style, width)
            self.assertGreaterEqual(seen["rows"], 3)  # A row for each used cluster, and the axis.
            self.assertIn("orders-secondary", seen["text"])
            self.assertIn("recovered", seen["text"])
        self.assertRegex(self.back["/priorities"],
                         "calls of orders went to: .*0 orders-primary, then .*1 orders-secondary")

    def test_each_moment_has_a_picture(self):
        self.assertEqual(["healthy", "failed_over", "back"], list(self.pictures))
        for moment, picture in self.pictures.items():
            with self.subTest(moment=moment):
                self.assertTrue(picture.startswith(b"\x89PNG"))
                self.assertGreater(len(picture), 10_000, "a picture of a page, not of nothing")
        self.assertEqual(3, len(set(self.pictures.values())), "each moment has a picture of its own")
        failed_over = {moment for moment, text in self.pictured.items() if ON_PRIORITY_1 in text}
        self.assertEqual({"failed_over"}, failed_over)
        self.assertIn("Nothing: every target can send calls.", self.pictured["healthy"])

    def test_light_and_dark(self):
        for page, text in self.failed_over.items():
            for width in WIDTHS:
                for dark in (False, True):
                    with self.subTest(page=page, width=width, dark=dark):
                        seen = measured(text, self.style, width, dark)
                        self.assertLessEqual(seen["scroll"], width)
                        self.assertEqual([], seen["out"])
                        check_colours(self, seen, dark)

    def test_links_and_the_buttons_back_and_forward_work(self):
        self.assertEqual(["/", "/clusters", "/", "/clusters", "/", "/"], [address for address, _ in self.history])
        overview, clusters, back, forward, again, loaded = (text for _, text in self.history)
        for text in (overview, back, again, loaded):
            self.assertIn("What is wrong", text)
        for text in (clusters, forward):
            self.assertIn("127.0.0.", text)
        self.assertEqual([], self.complaints)
        # A browser may show a stored page after "back". The page tells its age and how to load a
        # new one.
        made = [re.search(r"Made (\S+) by .*Load again", text)[1] for text in (overview, back, again, loaded)]
        self.assertLess(made[0], made[3], "a followed link makes the page again")
        self.assertEqual(sorted(made), made)

    def test_the_browser_refuses_nothing(self):
        for page, (size, refused) in self.refusals.items():
            with self.subTest(page=page):
                self.assertGreater(size, 10_000, "a picture of a page, not of nothing")
                self.assertEqual([], refused)


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "plan.html")
            subprocess.run([SIGNALBOX, "plan", "--resources", str(PLANNED), "--down", "zone-a", "--html", str(page)],
                           stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
            cls.page = page.read_text(encoding="utf-8")

    def test_light_and_dark_and_nothing_sticks_out(self):
        for width in PLAN_WIDTHS:
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    seen = measured(self.page, "", width, dark)
                    self.assertEqual(width, seen["wide"])
                    self.assertLessEqual(seen["scroll"], width)
                    self.assertEqual([], seen["out"])
                    check_colours(self, seen, dark)
                    self.assertIn("Where the calls to orders go", seen["text"])
                    self.assertIn("north/zone-b 70 %", seen["text"])
                    self.assertIn("health 100 → 50 × 1.4 = 70", seen["text"])
                    self.assertEqual(width < 960, "The table scrolls sideways" in seen["text"])


if __name__ == "__main__":
    need_browser()
    SIGNALBOX = sys.argv[1]
    SHOTS = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
