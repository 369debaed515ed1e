"""The documentation is true: its Python runs, and the site builds strictly without a network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, generator

ROOT = DOCS.parent


def python_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))


def test_the_data_page_shows_what_comes_out() -> None:
    written = (DOCS / "data.md").read_text(encoding="utf-8")
    assert written.count("```text") > 15
    assert written == generator("data").page(), "run: python docs/make/data.py"


def test_the_tables_of_the_default_are_current() -> None:
    written = (DOCS / "default.md").read_text(encoding="utf-8")
    assert written == generator("default").page(), "run: python docs/make/default.py"


def test_the_page_on_nhanes_is_current() -> None:
    written = (DOCS / "nhanes.md").read_text(encoding="utf-8")
    assert written == generator("nhanes").page(), "run: python docs/make/nhanes.py"


def test_the_page_on_reliability_is_current() -> None:
    written = (DOCS / "reliability.md").read_text(encoding="utf-8")
    assert written == generator("reliability").page(), "run: python docs/make/reliability.py"


@pytest.mark.filterwarnings("ignore:Fewer than 10 rows")
def test_quick_start_runs(capsys) -> None:
    names: dict = {}
    code = python_of("docs/quickstart.md").replace("max_iter=30", "max_iter=10")
    exec(compile(code, "docs/quickstart.md", "exec"), names)
    assert names["judged"].auc.value > 0.7
    assert "ROC gap" in capsys.readouterr().out


def test_the_page_about_scikit_learn_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # it saves a model
    names: dict = {}
    exec(compile(python_of("docs/estimator.md"), "docs/estimator.md", "exec"), names)
    assert names["search"].best_score_ > 0.6


@pytest.mark.slow
def test_readme_runs() -> None:
    names: dict = {}
    exec(compile(python_of("README.md"), "README.md", "exec"), names)
    assert names["judged"].auc.value > 0.8
    assert names["judged"].roc_gap.value < 0.05


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly (a dead link or anchor fails) from the tree as it is."""
    built = ROOT / "site" / "index.html"  # by `make docs`, if nothing has changed since
    sources = [*DOCS.rglob("*"), *(ROOT / "src").rglob("*.py"), *ROOT.glob("*.[my]*")]
    if built.exists() and built.stat().st_mtime > max(one.stat().st_mtime for one in sources):
        return built.parent
    home = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, home / "docs")  # the builder follows no links out of its folder
    for name in ("CHANGELOG.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, home)
    (home / "src").symlink_to(ROOT / "src")
    done = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict"],
        capture_output=True,
        text=True,
        cwd=home,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "griffe" not in done.stdout + done.stderr  # hundreds of its lines would hide a real one
    return home / "site"


def test_site_fetches_nothing(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loads = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?([^\" >]+)", page.read_text()
        )
        assert not [url for url in loads if url.startswith(("http:", "https:", "//"))], page


def test_the_reference_lists_every_public_name() -> None:
    api = generator("api")
    for stem in api.PACKAGES:
        written = (DOCS / "api" / f"{stem}.md").read_text(encoding="utf-8")
        assert written == api.page(stem), "run: python docs/make/api.py"


def test_the_reference_teaches(site: Path) -> None:
    shown = (site / "api" / "metrics" / "index.html").read_text()
    assert 'id="dcem.metrics.roc.auc"' in shown
    assert "ties count half" in shown
