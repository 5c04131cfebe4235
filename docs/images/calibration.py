"""Take the pictures of docs/calibration.md: play its commands, and look at the reports they write.

    python docs/images/calibration.py
    python docs/images/calibration.py loop
    python docs/images/calibration.py loop_arm

It needs Chromium. The first takes a minute, the second plays the section on `loop` in three, the
third that on an arm in half an hour.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER: Final = Path(__file__).parent
PICTURES: Final = {
    "check": ("stand-in", "#calibration details:has-text('What a fit was to tell')"),
    "fit": ("stand-in", "#calibration figure:has([data-figure=constants-0])"),
    "validate": ("stand-in", "#calibration figure:has([data-figure=traces-0])"),
    "report": ("compared", "#calibration"),
}
"""By step: the trial in whose report it is, and what of it."""
LOOPS: Final = {"loop": ("## `loop`", "loop"), "loop_arm": ("### An arm in a loop", "arm-loop")}
"""By step: the title above its commands, and the trial they make."""
LOOP: Final = "#calibration figure:has([data-figure=loop])"
_WIDE: Final = 1000


def main() -> None:
    """Play the page in a folder that is gone afterwards, and write the pictures."""
    page = (FOLDER.parent / "calibration.md").read_text(encoding="utf-8")
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in re.findall(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", page, re.DOTALL):
            (folder / file).write_text(text, encoding="utf-8")
        for step in LOOPS.keys() & set(sys.argv):
            title, trial = LOOPS[step]
            play_block(folder, page.partition(f"\n{title}")[2])
            take(folder, {step: (trial, LOOP)})
        if not sys.argv[1:]:
            play_block(folder, page)
            shutil.copy(folder / "gantry.yaml", folder / "stand-in/calibration")
            play(folder, "report", "stand-in")
            take(folder, PICTURES)


def play_block(folder: Path, page: str) -> None:
    """Play the first commands of a page, or of a part of it."""
    block = page.partition("```console\n")[2].partition("```")[0]
    for line in re.findall(r"^\$ robo-eval (.*)$", block, re.MULTILINE):
        play(folder, *shlex.split(line))


def play(folder: Path, *words: str) -> None:
    """Call the command line in a folder."""
    subprocess.run([sys.executable, "-m", "robo_eval", *words], cwd=folder, check=True)


def take(folder: Path, pictures: dict[str, tuple[str, str]]) -> None:
    """Take each picture."""
    with sync_playwright() as driver:
        found = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for step, (trial, what) in pictures.items():
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.goto((folder / trial / "report/index.html").as_uri())
            page.locator("html[data-ready=yes]").wait_for(state="attached")
            for part in page.locator("#calibration details").all():
                part.evaluate("part => { part.open = true }")
            image = Image.open(BytesIO(page.locator(what).screenshot())).convert("RGB")
            image.thumbnail((_WIDE, 10 * _WIDE))
            image.quantize(64).save(FOLDER / f"calibration_{step}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
