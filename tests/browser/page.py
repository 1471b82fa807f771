"""The page, driven as a user would."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from elastic.api.server import Server

_TIMEOUT_SECONDS = 20.0


class Page:
    """Opens the page of a server. A wait that times out names what it waited for."""

    def __init__(self, browser: Chrome, server: Server) -> None:
        self.browser = browser
        self.server = server
        self.read_errors()  # discards those of earlier pages
        browser.get(server.url)
        self.until("live", lambda: self.text("link") == "live" and self.cells())

    def until(self, what: str, holds: Callable[[], Any], seconds: float = _TIMEOUT_SECONDS) -> Any:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if found := holds():
                return found
            time.sleep(0.05)
        raise AssertionError(
            f"timed out after {seconds:g} s waiting for: {what}. Message on the page: {self.text('message')!r}"
        )

    def resize(self, width: int | None, height: int = 900) -> None:
        """Emulate a screen of this width; None restores the window."""
        command = "Emulation.clearDeviceMetricsOverride"
        metrics: dict[str, Any] = {}
        if width is not None:
            command = "Emulation.setDeviceMetricsOverride"
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd(command, metrics)

    def save_screenshot(self, path: Path) -> None:
        """Save a picture of the whole page."""
        height = self.run("return document.documentElement.scrollHeight")
        self.resize(1360, height)
        self.browser.save_screenshot(str(path))
        self.resize(None)

    def element(self, name: str) -> WebElement:
        return self.browser.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return str(self.run("return document.getElementById(arguments[0])?.textContent ?? ''", name)).strip()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def cells(self) -> list[dict[str, str]]:
        """Return the owner and the state of every task in the strip."""
        script = "return [...document.querySelectorAll('#strip .cell[data-task]')].map((cell) => ({...cell.dataset}))"
        found: list[dict[str, str]] = self.run(script)
        return found

    def owners(self) -> list[str]:
        return [cell.get("owner", "") for cell in self.cells()]

    def nodes(self) -> set[str]:
        return set(self.owners())

    def count_in_flight(self) -> int:
        """Return the number of animated tasks."""
        return int(self.run("return document.querySelectorAll('#strip .flight[visibility=visible]').length"))

    def records(self) -> int:
        """Return the number of journal records on the page."""
        return len(self.browser.find_elements(By.CSS_SELECTOR, "#journal tbody tr"))

    def choose(self, name: str, value: str) -> None:
        Select(self.element(name)).select_by_value(value)

    def fill(self, name: str, value: str) -> None:
        self.element(name).clear()
        self.element(name).send_keys(value)

    def open(self, summary: str) -> None:
        self.browser.find_element(By.XPATH, f"//summary[text()='{summary}']").click()

    def compare(self) -> list[str]:
        """Compare plans; return the strategies on the page."""
        self.run("document.getElementById('plans').replaceChildren()")
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.element("compare"))  # not below a message
        self.element("compare").click()
        find = "return [...document.querySelectorAll('.candidate')].map((one) => one.dataset.strategy)"
        return list(self.until("plans", lambda: self.run(find)))

    def carry_out(self, strategy: str, token: str | None = None) -> None:
        """Carry out a plan, and enter the token if one is given."""
        button = self.browser.find_element(By.CSS_SELECTOR, f".candidate[data-strategy={strategy}] .go")
        self.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        if token is not None:
            self.enter_token(token)

    def enter_token(self, token: str) -> None:
        self.until("the token dialog", lambda: self.run("return document.getElementById('token-dialog').open"))
        self.fill("token", token)
        self.element("token-ok").click()

    def read_errors(self) -> list[str]:
        """Return and clear the browser's own errors: failed scripts, missing files, policy violations."""
        return [entry["message"] for entry in self._read_log() if entry["level"] == "SEVERE"]

    def _read_log(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.browser.get_log("browser")  # type: ignore[no-untyped-call]
        return found
