"""The explorer in a real browser: typing, sliding, bad formulas, two tabs, a phone in the dark, a killed server."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from browser_checks import TOO_WIDE, chromium

import derive
from derive.design.one_input import one_input
from derive.explorer.answers import ratios
from derive.explorer.guard import HEADER
from derive.explorer.server import ExplorerServer

PATIENCE = 120_000
"""Milliseconds: the machine may be busy."""


@pytest.fixture(scope="module")
def server():
    found = ExplorerServer(port=0)
    found.start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser, server, request):
    kind = getattr(request, "param", {})
    context = browser.new_context(
        viewport={"width": kind.get("width", 1280), "height": 900}, color_scheme=kind.get("scheme", "light")
    )
    context.set_default_timeout(PATIENCE)
    found = context.new_page()
    wrong: list[str] = []
    found.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda r: None if r.url.startswith((server.url, "data:", "blob:")) else wrong.append(r.url))
    yield found
    context.close()
    assert wrong == []


def settled(page, text: str = "") -> None:
    """Until K is drawn for the question that the page's address holds, and no card waits."""
    page.wait_for_function(
        f"() => !wrong && QUICK.every(p => shown[p] === key(p)) && data.activation?.name?.includes({json.dumps(text)})"
    )


def drawn_kernel(page) -> list[float]:
    return page.evaluate("() => data.depth.K")


def test_typing_sliding_and_sharing(page, server):
    page.goto(server.url + "?activation=tanh&depth=8")
    settled(page, "tanh")
    assert page.evaluate("() => data.depth.K")[-1] == pytest.approx(
        one_input("tanh", 8, 0, 1).tensors["K"][-1], rel=1e-6
    )
    page.fill("#activation", "relu")
    settled(page, "relu")
    assert page.input_value("#C_W-number") == "2"  # the critical point is taken over
    page.locator("#C_W").fill("1")
    page.locator("#depth").focus()
    page.keyboard.press("ArrowRight")  # sliders by keyboard
    page.wait_for_function("() => data.depth.K.length === 9 && data.depth.C_W === 1")
    assert drawn_kernel(page)[-1] == pytest.approx(2.0**-8, rel=1e-6)  # K halves in each layer, from C_W x.x/n_0 = 1
    page.fill("#width-number", "64")
    page.locator("#width-number").blur()
    assert "n = 64" in page.inner_text("#ratios-note")
    address = page.url
    assert {"activation=relu", "C_W=1", "depth=9", "width=64"} <= set(re.split("[?&]", address))
    page.goto("about:blank")
    page.goto(address)  # the address is the whole question
    settled(page, "relu")
    assert drawn_kernel(page)[-1] == pytest.approx(2.0**-8, rel=1e-6) and page.input_value("#width-number") == "64"


@pytest.mark.slow
def test_the_dot_of_the_phase_diagram_moves_by_keyboard_and_mouse(page, server):
    page.goto(server.url + "?activation=tanh&depth=6")
    settled(page)
    dot = page.locator("circle.here")
    dot.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => state.C_W > 1.001 && data.depth.C_W === state.C_W")
    before = page.evaluate("() => state.C_b")
    box = dot.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] - 60, steps=4)
    page.mouse.up()
    page.wait_for_function(f"() => state.C_b > {before} && data.depth.C_b === state.C_b")
    page.click("#critical")
    page.wait_for_function("() => state.C_W === null && data.depth.C_W === 1")


def test_bad_formulas_are_one_sentence_and_what_was_shown_stays(page, server):
    page.goto(server.url + "?activation=tanh&depth=6")
    settled(page)
    kept = drawn_kernel(page)
    for text in ("tanh(z", "z + y", "<img src=x onerror=alert(1)>", "__import__('os')", "1/z"):
        page.fill("#activation", text)
        page.wait_for_function("() => document.getElementById('wrong').textContent.length > 10 && !quick.controller")
        told = page.inner_text("#wrong")
        assert (
            "\n" not in told and "Traceback" not in told and page.get_attribute("#activation", "aria-invalid") == "true"
        )
        assert drawn_kernel(page) == kept
        page.fill("#activation", "tanh")
        page.wait_for_function("() => document.getElementById('wrong').hidden && !wrong")
    settled(page)
    page.goto(server.url + "?activation=%3Cscript%3Ealert(1)%3C%2Fscript%3E&C_W=abc&depth=-3&width=1e99")
    page.wait_for_selector("#wrong:not([hidden])")


@pytest.mark.parametrize("page", [{"width": 390, "scheme": "dark"}], indirect=True)
def test_a_phone_in_the_dark(page, server):
    page.goto(server.url + "?activation=relu&depth=6")
    settled(page)
    page.wait_for_function("() => SLOW.every(p => shown[p] === key(p))")
    wide = [what for what in page.evaluate(TOO_WIDE) if not re.match(r"<m(?!ain)", what)]  # glyphs lean out of MathML
    assert wide == []
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 150
    names = page.evaluate(
        "() => [...document.querySelectorAll('input, button')].filter(e => !e.labels?.length && "
        "!e.ariaLabel && !e.textContent.trim()).map(e => e.id)"
    )
    assert names == []  # everything that can be used has a name


@pytest.mark.slow
def test_two_tabs_do_not_mix(browser, server):
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    tabs = [context.new_page(), context.new_page()]
    for tab, name in zip(tabs, ("linear", "relu")):
        tab.goto(f"{server.url}?activation={name}&depth=6")
    for step in range(3):
        for tab in tabs:
            tab.locator("#C_W").fill(str(0.5 + step / 10))
    for tab, name in zip(tabs, ("linear", "relu")):
        settled(tab, name)
        assert drawn_kernel(tab)[1] / drawn_kernel(tab)[0] == pytest.approx(0.7 if name == "linear" else 0.35, rel=1e-6)
    context.close()


def asked(server: ExplorerServer, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE / 1000)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_what_the_server_refuses(server):
    own = {HEADER: "1"}
    assert asked(server, "/ask?parts=activation&activation=tanh")[0] == 403
    assert asked(server, "/ask?parts=activation&activation=tanh", **own, Host="evil.example")[0] == 403
    assert asked(server, "/", Host="evil.example")[0] == 403
    assert asked(server, "/ask?parts=system&activation=tanh", **own)[0] == 400
    assert asked(server, "/../../etc/passwd")[0] == 404
    assert asked(server, "/page.js")[0] == 200
    assert asked(server, "/ask?" + "a" * 9000, **own)[0] == 414
    code, text = asked(server, "/ask?parts=depth&activation=relu&depth=4", **own)
    assert code == 200 and [list(json.loads(line)) for line in text.splitlines()][-1] == ["done"]
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    with pytest.raises(derive.DeriveError, match="Port"):
        ExplorerServer(server.server_port)


@pytest.mark.slow
def test_a_question_that_nobody_waits_for_is_dropped(server):
    """The page closes the connection in the middle of a report: the workers are free again within seconds."""
    with socket.create_connection(("127.0.0.1", server.server_port)) as line:
        host = f"127.0.0.1:{server.server_port}"
        asked_for = "/ask?parts=report&activation=z*tanh(z)"
        line.sendall(f"GET {asked_for} HTTP/1.1\r\nHost: {host}\r\n{HEADER}: 1\r\n\r\n".encode())
        while b"progress" not in line.recv(4096):
            pass
    start = time.monotonic()
    while len(server.pool._idle) < 2:
        time.sleep(0.05)
        assert time.monotonic() - start < 30
    code, text = asked(server, "/ask?parts=depth&activation=relu&depth=3", **{HEADER: "1"})
    assert code == 200 and '"K"' in text


@pytest.mark.slow
def test_report_is_downloaded(page, server):
    page.goto(server.url + "?activation=linear&depth=4")
    settled(page)
    with page.expect_download(timeout=5 * PATIENCE) as download:
        page.click("#report")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "The effective theory of linear" in text and "written by derive report" in text


def started(port: int) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", "from derive.entry import main; main()", "explore", "--port", str(port)]
    found = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    assert found.stdout is not None and found.stdout.readline().startswith("http://127.0.0.1:")
    return found


@pytest.mark.slow
def test_a_killed_server_is_noticed_leaves_nothing_behind_and_may_return(browser):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = started(port)
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{port}/?activation=relu&depth=6")
    settled(page, "relu")
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(first.pid)], capture_output=True, text=True
    ).stdout.split()
    assert len(children) == 2
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    page.locator("#C_W").fill("1")
    page.wait_for_function("() => document.getElementById('progress').textContent.includes('does not answer')")
    assert drawn_kernel(page)[0] == pytest.approx(2.0)  # what was shown stays
    end = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in children):
        assert time.monotonic() < end, "workers outlive their server"
        time.sleep(0.1)
    second = started(port)
    page.wait_for_function("() => data.depth.C_W === 1")
    assert drawn_kernel(page)[-1] == pytest.approx(2.0**-5)
    assert "does not answer" not in page.inner_text("#status")
    context.close()
    second.send_signal(signal.SIGINT)
    assert second.wait(30) == 0
    second.stdout.close()


@pytest.mark.slow
def test_the_page_without_a_server(browser, tmp_path):
    """One file, opened from disk without network: its interpolated numbers against the exact recursions."""
    file = derive.explore("relu", static=tmp_path / "explorer.html").file
    assert file is not None
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(file.as_uri() + "#activation=relu&C_W=1.7&C_b=0.1&input_norm=0.9&depth=12")
    settled(page, "relu")
    compare(page, "relu")
    page.fill("#activation", "z**2")
    page.wait_for_selector("#wrong:not([hidden])")
    assert "built-in" in page.inner_text("#wrong")
    context.close()
    assert wrong == []


def compare(page, name: str) -> None:
    exact = one_input(name, 12, 0.1, 1.7, 0.9)
    shown = page.evaluate("() => data.depth")
    assert shown["K"] == pytest.approx(list(exact.tensors["K"]), rel=2e-3)
    for own, (title, values) in zip(ratios(exact).values(), shown["ratios"].items()):
        assert values[1:] == pytest.approx(own[1:], rel=5e-3, abs=1e-3), title


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "gelu", "swish", "softsign"])
def test_stored_answers_of_others(browser, tmp_path, name):
    file = derive.explore(name, static=tmp_path / "explorer.html").file
    assert file is not None
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(f"{file.as_uri()}#activation={name}&C_W=1.7&C_b=0.1&input_norm=0.9&depth=12")
    settled(page, name)
    compare(page, name)
    context.close()
