"""Take the pictures of docs/app.md: `python docs/make/app.py`, some minutes.

The pages of `dcem app` are clicked through in a browser, with a made-up table of the tests. Where
there is no browser the pictures are left as they are, and that is said.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 800}
PICTURES = (
    "app-choose.png",
    "app-columns.png",
    "app-columns-phone.png",
    "app-check.png",
    "app-running.png",
    "app-audit.png",
    "app-audit-phone.png",
    "app-same.png",
)


@contextmanager
def pages(folder: Path) -> Iterator[str]:
    """The address of an app that reads a folder."""
    command = [sys.executable, "-u", "-m", "dcem", "app", "--no-browser", str(folder)]
    at_home = {**os.environ, "HOME": str(folder.parent)}  # the pages say ~/study
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=at_home) as process:
        assert process.stdout is not None
        found = re.search(r"http\S+", process.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            process.terminate()


def click_through(page: Any, address: str) -> None:
    """From the choice of a table to the audit, a picture of each screen."""

    def picture(name: str, **how: Any) -> None:
        page.wait_for_load_state()  # the button for the theme appears by script
        page.screenshot(path=DOCS / "img" / f"app-{name}.png", **how)
        print(f"wrote app-{name}.png")

    page.goto(address)
    picture("choose")
    page.get_by_role("button", name="survey.csv").click()
    page.get_by_role("link", name="Next").click()
    picture("columns")
    page.set_viewport_size(PHONE)
    picture("columns-phone")
    page.set_viewport_size(WIDE)
    page.get_by_label("Vocabulary of the reports").select_option("medicine")
    page.get_by_role("button", name="Use these columns").click()
    picture("check")
    page.get_by_role("link", name="Yes").click()
    page.get_by_role("button", name="Start the audit").click()
    page.wait_for_selector("text=left", timeout=300_000)
    picture("running")
    page.wait_for_selector(".result", timeout=300_000)
    page.frame_locator("iframe").locator("#answer").wait_for()
    picture("audit")
    page.locator(".same .two").screenshot(path=DOCS / "img" / "app-same.png")
    page.set_viewport_size(PHONE)
    page.evaluate("scrollTo(0, 0)")
    picture("audit-phone")


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print(f"left as they are: {', '.join(PICTURES)} (no chromium here)")
        return
    from playwright.sync_api import sync_playwright

    sys.path.append(str(DOCS.parent / "tests" / "support"))
    from tables import write_survey

    with tempfile.TemporaryDirectory() as home, sync_playwright() as started:
        folder = Path(home).resolve() / "study"
        folder.mkdir()
        write_survey(folder / "survey.csv", 2_000)
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with pages(folder) as address:
            click_through(browser.new_page(viewport=WIDE), address)
        browser.close()


if __name__ == "__main__":
    main()
