"""What a reader would complain about, asked of a page in headless Chromium with no network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (1280, 390)
_NAMES = ("chromium", "chromium-browser", "google-chrome")

_RAW_TEX = r"""() => {
  const found = [], inside = 'script, style, pre, code, svg, mjx-container, textarea, dl.py';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest(inside)) continue;
    if (/\\[([]|\\[a-zA-Z]{2,}|\$[^ ]|_\{|\^\{/.test(node.textContent))
      found.push(node.textContent.trim().slice(0, 80));
  }
  document.querySelectorAll('mjx-merror, [data-mml-node=merror], mjx-container [fill=red]')
    .forEach(e => found.push('error in TeX: ' + e.textContent + (e.getAttribute('data-mjx-error') || '')));
  return found;
}"""

TOO_WIDE = """() => [...document.querySelectorAll('body, body *')]
  .filter(e => !e.closest('svg') && e.clientWidth > 0 && getComputedStyle(e).display !== 'inline'
               && e.scrollWidth > e.clientWidth + 1 && e.getBoundingClientRect().width > 2)
  .filter(e => !(e.closest('.sidebar-drawer, .toc-drawer, .mobile-header, .visually-hidden')))
  .map(e => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') || ''}"> ` +
            `${e.scrollWidth} > ${e.clientWidth}`)"""

_READY = """() => document.readyState === 'complete'
  && (!window.MathJax || document.documentElement.dataset.math === 'done')"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium without network; where there is none the test says so and is skipped."""
    program = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium): pages cannot be looked at")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * 127.0.0.1:9, EXCLUDE 127.0.0.1"]
        browser = driver.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


def complaints(browser: Any, page_file: Path, width: int, scheme: str = "light") -> list[str]:
    """Console errors, requests that leave the disk, raw TeX, elements wider than their container."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme)
    page, found = context.new_page(), []
    page.on("console", lambda m: found.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: found.append(f"not loaded: {request.url[:120]}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:", "blob:")) else found.append(f"network: {request.url}")
        ),
    )
    page.goto(page_file.resolve().as_uri(), timeout=120_000)
    page.wait_for_function(_READY, timeout=120_000)
    found += [f"raw TeX: {text}" for text in page.evaluate(_RAW_TEX)]
    found += [f"too wide: {text}" for text in page.evaluate(TOO_WIDE)]
    context.close()
    return found
