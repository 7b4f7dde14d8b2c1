"""Debian's chromium, driven over the DevTools protocol: open a page, press keys, look at it, take its picture."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), " ": (" ", 32), "ArrowLeft": ("", 37), "ArrowUp": ("", 38),
        "ArrowRight": ("", 39), "ArrowDown": ("", 40), "Home": ("", 36), "End": ("", 35)}  # fmt: skip


def find_chromium() -> str | None:
    """Return the browser's program."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


@dataclass
class Page:
    """One page, seen and touched as a person would.

    Attributes:
        requests: every address that it asked for.
        errors: exceptions, and what it wrote to the console as errors.
    """

    connection: ClientConnection
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        number = next(self.numbers)
        self.connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.connection.recv(timeout=60))
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])

    def open(self, address: str, *, ready: str = "document.querySelector('[data-ready]')") -> float:
        """Open an address; return the seconds until something is there."""
        start_s = time.perf_counter()
        self.send("Page.navigate", url=address)
        self.wait(ready)
        return time.perf_counter() - start_s

    def wait(self, condition: str, timeout_s: float = 30.0) -> None:
        """Wait until an expression is true."""
        end_s = time.monotonic() + timeout_s
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end_s, f"never became true: {condition}; {self.errors}"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """Return what an expression gives, awaited, as plain values."""
        result = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """Return the text of every element that a selector finds."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return list(self.evaluate(f"{found}.map((each) => each.textContent)"))

    def text(self, selector: str) -> str:
        """Return the text of the first element that a selector finds."""
        return self.texts(selector)[0]

    def get(self, selector: str, name: str) -> Any:
        """Return a property of the first element that a selector finds."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).{name}")

    def press(self, *keys: str) -> None:
        """Press keys one after another."""
        for key in keys:
            text, code = KEYS[key]
            for kind in ("keyDown", "keyUp"):
                self.send("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                          windowsVirtualKeyCode=code, code="Space" if key == " " else key)  # fmt: skip

    def click(self, selector: str) -> None:
        """Click in the middle of an element, where a person would."""
        place = f"document.querySelector({json.dumps(selector)})"
        box = self.evaluate(f"({place}.scrollIntoView({{block: 'center'}}), {place}.getBoundingClientRect().toJSON())")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def look(self, width: int, height: int, *, scheme: str = "light", scale: float = 1.0, touch: bool = False) -> None:
        """Set the size of the window and the colours that the user prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=touch
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def browse() -> Iterator[Page]:
    """Start a browser for as long as the block lasts; give its page."""
    program = find_chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--remote-debugging-port=0", f"--user-data-dir={folder}", "--hide-scrollbars",
                   "about:blank"]  # fmt: skip
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(_page_address(Path(folder)), max_size=1 << 28) as connection:
                page = Page(connection)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    page.send(f"{domain}.enable")
                yield page
        finally:
            process.terminate()
            process.wait(timeout=20)


def _page_address(folder: Path) -> str:
    """Return where the page of a browser that is starting is spoken to."""
    import urllib.request

    end_s = time.monotonic() + 30
    while not (folder / "DevToolsActivePort").is_file() or not (folder / "DevToolsActivePort").read_text().strip():
        assert time.monotonic() < end_s, "the browser did not start"
        time.sleep(0.05)
    port = (folder / "DevToolsActivePort").read_text().split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
        targets = json.load(answer)
    return str(next(each["webSocketDebuggerUrl"] for each in targets if each["type"] == "page"))


def need_chromium() -> None:
    """Skip, loudly, where there is no browser; in CI there must be one."""
    if find_chromium() is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs chromium: `apt-get install -y chromium`")
        pytest.skip("no chromium: the page of the lens is NOT tested here. Try `apt-get install chromium`.")
