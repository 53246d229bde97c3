"""What a real browser, without a window, makes of a page: its width, its pictures, its contrast."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

MEASURE = """\
<!DOCTYPE html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; display: block }</style>
%s
<script>
function colour(text) {
  const found = text.match(/[\\d.]+/g).map(Number);
  return found.length < 4 || found[3] > 0 ? found.slice(0, 3) : null;
}
function light(rgb) {
  const part = rgb.map(each => (each /= 255) <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
}
function behind(page, element, x, y) {
  for (const each of page.elementsFromPoint(x, y)) {
    const style = page.defaultView.getComputedStyle(each);
    if (each.tagName === "text" || each.tagName === "tspan") continue;
    const shape = each instanceof page.defaultView.SVGGeometryElement;
    const found = shape ? style.fill !== "none" && colour(style.fill) : colour(style.backgroundColor);
    if (found) return found;
  }
  return colour(page.defaultView.getComputedStyle(page.body).backgroundColor) || [255, 255, 255];
}
function measured(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  frame.height = page.documentElement.scrollHeight + 50;
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT), faint = [];
  let texts = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, range = page.createRange();
    if (!node.data.trim() || element.closest("title, style")) continue;
    range.selectNodeContents(node);
    const box = range.getClientRects()[0];
    if (!box || !box.width || !element.checkVisibility()) continue;
    const x = Math.min(box.left + box.width / 2, page.documentElement.clientWidth - 2);
    const style = view.getComputedStyle(element);
    const ink = colour(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const paper = behind(page, element, x, box.top + box.height / 2);
    const [more, less] = [light(ink), light(paper)].sort((a, b) => b - a);
    const contrast = (more + 0.05) / (less + 0.05);
    texts += 1;
    if (contrast < 4.5) faint.push([node.data.trim().slice(0, 40), contrast]);
  }
  const pictures = [...page.querySelectorAll("svg")].filter(each => each.checkVisibility());
  return {
    width: page.documentElement.clientWidth, needs: page.documentElement.scrollWidth, texts, faint,
    pictures: pictures.map(each => each.getBoundingClientRect()).map(each => [each.width, each.height]),
    asked: view.performance.getEntriesByType("resource").map(each => each.name),
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
  };
}
addEventListener("load", () => {
  const told = document.createElement("pre");
  told.id = "measured";
  told.textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(measured));
  document.body.append(told);
});
</script>
"""


def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("there is no chromium")


def seen(folder: Path, text: str, dark: bool) -> list[dict[str, Any]]:
    """What a browser makes of a page on a phone and on a desk."""
    frames = "\n".join(
        f'<iframe width="{width}" srcdoc="{html.escape(text)}"></iframe>' for width in (360, 1280)
    )
    (folder / "harness.html").write_text(MEASURE % frames, "utf-8")
    ran = subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={folder / 'profile'}", "--disable-background-networking",
            "--enable-logging=stderr", "--window-size=1400,1000", "--virtual-time-budget=10000",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--dump-dom", (folder / "harness.html").as_uri(),
        ],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in ran.stderr, ran.stderr
    told = re.search(r'<pre id="measured">(.*?)</pre>', ran.stdout, re.DOTALL)
    assert told is not None, ran.stderr
    known: list[dict[str, Any]] = json.loads(html.unescape(told[1]))
    return known
