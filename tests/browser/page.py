"""The page as its reader uses it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from elastic.api.server import Server

_PATIENCE_SECONDS = 20.0


class Page:
    """Opens the page of a server; every wait ends in time, or fails with what it waited for."""

    def __init__(self, browser: Chrome, server: Server) -> None:
        self.browser = browser
        self.server = server
        self.complaints()  # those of earlier pages
        browser.get(server.url)
        self.until("live", lambda: self.text("link") == "live" and self.cells())

    def until(self, what: str, holds: Callable[[], Any], seconds: float = _PATIENCE_SECONDS) -> Any:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if found := holds():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not in time: {what}. The page says: {self.text('message')!r}")

    def resize(self, width: int | None, height: int = 900) -> None:
        """As wide as this screen; None is as wide as it was."""
        command = "Emulation.clearDeviceMetricsOverride"
        how: dict[str, Any] = {}
        if width is not None:
            command = "Emulation.setDeviceMetricsOverride"
            how = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd(command, how)

    def picture(self, path: Path) -> None:
        """The whole page, for whoever wants to see what a test saw."""
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
        """Every task of the strip: who owns it, and whether it stays, waits, moves or has moved."""
        script = "return [...document.querySelectorAll('#strip .cell[data-task]')].map((cell) => ({...cell.dataset}))"
        found: list[dict[str, str]] = self.run(script)
        return found

    def owners(self) -> list[str]:
        return [cell.get("owner", "") for cell in self.cells()]

    def nodes(self) -> set[str]:
        return set(self.owners())

    def flying(self) -> int:
        """How many tasks are drawn on their way."""
        return int(self.run("return document.querySelectorAll('#strip .flight[visibility=visible]').length"))

    def records(self) -> int:
        """How many records of the journal are shown."""
        return len(self.browser.find_elements(By.CSS_SELECTOR, "#journal tbody tr"))

    def choose(self, name: str, value: str) -> None:
        Select(self.element(name)).select_by_value(value)

    def fill(self, name: str, value: str) -> None:
        self.element(name).clear()
        self.element(name).send_keys(value)

    def open(self, summary: str) -> None:
        self.browser.find_element(By.XPATH, f"//summary[text()='{summary}']").click()

    def compare(self) -> list[str]:
        """Ask for plans; the strategies that are shown."""
        self.run("document.getElementById('plans').replaceChildren()")
        self.element("compare").click()
        find = "return [...document.querySelectorAll('.candidate')].map((one) => one.dataset.strategy)"
        return list(self.until("plans", lambda: self.run(find)))

    def go(self, strategy: str, token: str | None = None) -> None:
        """Carry a plan out; the token, if it is asked for."""
        button = self.browser.find_element(By.CSS_SELECTOR, f".candidate[data-strategy={strategy}] .go")
        self.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        if token is not None:
            self.give(token)

    def give(self, token: str) -> None:
        self.until(
            "the question for the token", lambda: self.run("return document.getElementById('token-dialog').open")
        )
        self.fill("token", token)
        self.element("token-ok").click()

    def complaints(self) -> list[str]:
        """What the browser itself found wrong: scripts that failed, files that are missing, policies broken."""
        return [entry["message"] for entry in self._logged() if entry["level"] == "SEVERE"]

    def _logged(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.browser.get_log("browser")  # type: ignore[no-untyped-call]
        return found
