"""The documentation is true: its Python runs, and the site builds strictly without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def python_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))


def test_quick_start_runs(capsys) -> None:
    names: dict = {}
    exec(compile(python_of("docs/quickstart.md"), "docs/quickstart.md", "exec"), names)
    assert names["judged"].auc.estimate > 0.7
    assert "ROC gap" in capsys.readouterr().out


@pytest.mark.slow
def test_readme_runs() -> None:
    names: dict = {}
    exec(compile(python_of("README.md"), "README.md", "exec"), names)
    assert names["judged"].auc.estimate > 0.8
    assert names["judged"].roc_gap.estimate < 0.05


def test_site_builds_strictly_and_fetches_nothing(tmp_path) -> None:
    # Not quietly: mkdocs counts warnings for --strict only if it is allowed to show them.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        loads = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?([^\" >]+)", page.read_text()
        )
        assert not [url for url in loads if url.startswith(("http:", "https:", "//"))], page
