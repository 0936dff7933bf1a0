# SPDX-License-Identifier: Apache-2.0
"""Measures a page in headless Chromium, in a frame of any width: its text, and the elements that
are wider than the page.

    HTML ─▶ a frame of a file of its own ─▶ the script of that file measures ─▶ measured()

Pages may forbid scripts of their own, and a browser window has a least width. A frame avoids both
limits.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120  # Seconds, for one run of the browser.
SKIPPED = 77  # The exit status by which CTest knows a skipped test.


def need_browser() -> None:
    """Ends this process if Chromium is not installed: as skipped, or with CI=true as failed."""
    if CHROMIUM is None:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: there is no Chromium (Debian's package is chromium); install it")
        sys.exit(1 if in_ci else SKIPPED)


# `broken` of the result: words of table cells that stand on two lines. Words of more than 21
# letters may be broken, and a line may end after a hyphen or a slash.
MEASURE = """
<!doctype html><meta charset="utf-8"><body>
<iframe id="frame" style="border:0;width:%dpx;height:3000px" srcdoc="%s"></iframe><pre id="out"></pre>
<script>
function brokenWords(page) {
  const found = [];
  for (const cell of page.querySelectorAll("th, td")) {
    if (getComputedStyle(cell.parentNode.parentNode).position === "absolute") continue;  // Hidden headings.
    const texts = page.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[\\w.:]+/g)) {
        if (word[0].length > 21) continue;
        const range = page.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map(line => Math.round(line.top)));
        if (tops.size > 1) found.push(word[0]);
      }
    }
  }
  return found;
}
addEventListener("load", () => {
  const page = document.getElementById("frame").contentDocument;
  const wide = page.documentElement.clientWidth;
  const out = [...page.querySelectorAll("body *")].filter(e => %s)
      .filter(e => e.getBoundingClientRect().right > wide + 1)
      .map(e => e.tagName + " " + e.className + " " + e.textContent.slice(0, 60));
  document.getElementById("out").textContent = JSON.stringify({
      text: page.body.innerText, wide, scroll: page.documentElement.scrollWidth, out, broken: brokenWords(page),
      font: getComputedStyle(page.body).fontFamily,
      colours: [getComputedStyle(page.body).color, getComputedStyle(page.body).backgroundColor], ...%s});
});
</script>
"""


def browser(*arguments: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--enable-logging=stderr",
             f"--user-data-dir={profile}", *arguments],
            capture_output=True, text=True, timeout=PATIENCE, check=True)


def photograph(picture: Path, *arguments: str) -> str:
    """Writes a picture of a page. Returns what the browser says meanwhile. On a busy machine the
    browser may end without a picture, so it gets three attempts."""
    for _ in range(3):
        said = browser(f"--screenshot={picture}", *arguments).stderr
        if picture.exists():
            return said
    raise AssertionError(f"the browser writes no picture, and says: {said[-2000:]}")


def measured(page: str, width: int, *, inside: str, more: str = "{}", dark: bool = False) -> dict:
    """Measures the page in a frame of this width. `inside` is JavaScript that says whether the
    element `e` must stay inside the page. `more` is a JavaScript object with further results about
    `page`. `dark` is the reader's preference for dark pages."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "measure.html")
        file.write_text(MEASURE % (width, html.escape(page), inside, more), encoding="utf-8")
        dom = browser(f"--window-size={width + 100},1000", "--virtual-time-budget=5000", "--dump-dom",
                      f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"file://{file}").stdout
    return json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', dom, re.S).group(1)))
