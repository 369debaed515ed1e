"""Artificial tables, the figures and the page, and the commands that write them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from choices import each_once
from typer.testing import CliRunner

from dcem.cli.sepsis import app
from dcem.report.cohort import cohort_document, draw_distributions, draw_flow, save_figure
from dcem.report.to_html import to_html
from dcem.table.messages import InputError
from dcem.tasks.sepsis.account import STEPS
from dcem.tasks.sepsis.artificial import write_artificial
from dcem.tasks.sepsis.cohort import CohortBuild, build_cohort
from dcem.tasks.sepsis.sources import COLUMNS, TABLES


def words(figure: object) -> list[str]:
    import matplotlib.text

    found = figure.findobj(matplotlib.text.Text)  # type: ignore[attr-defined]
    return [text.get_text() for text in found]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The stays of a small artificial cohort, from Parquet."""
    folder = tmp_path_factory.mktemp("small")
    write_artificial(folder / "tables", stays=200, layout="parquet", upper_case=False)
    build_cohort(folder / "tables", folder / "cohort.parquet", stays=folder / "stays.csv")
    stays = pd.read_csv(folder / "stays.csv")
    assert len(stays) == 200
    assert stays["max_rr"].notna().sum() > 150
    return (folder / "stays.csv").read_bytes()


@pytest.mark.parametrize(
    ("layout", "upper_case"),
    each_once(["csv.gz", "csv", "parquet"], [True, False]),
)
def test_every_layout_of_artificial_tables_builds_the_same(
    layout: str, upper_case: bool, small: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    write_artificial(folder, stays=200, layout=layout, upper_case=upper_case)
    build_cohort(folder, tmp_path / "cohort.parquet", stays=tmp_path / "stays.csv")
    assert (tmp_path / "stays.csv").read_bytes() == small


def test_artificial_tables_have_the_columns_of_the_real_ones(demo: Path) -> None:
    for table in TABLES:
        path = demo / f"{table.upper()}.csv.gz"
        assert COLUMNS[table] == list(pd.read_csv(path, nrows=0).columns)


def test_artificial_cohorts_differ_by_seed_only(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_artificial(tmp_path / name, stays=50, random_state=seed, layout="csv")
    a, b, c = ((tmp_path / name / "LABEVENTS.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_artificial_tables_never_mix_with_others(tmp_path: Path) -> None:
    (tmp_path / "NOTES.csv").write_text("something")
    with pytest.raises(InputError, match="not empty"):
        write_artificial(tmp_path)


def test_the_cohort_has_both_outcomes_in_both_groups(cohort_build: CohortBuild) -> None:
    cohort = pd.read_parquet(cohort_build.out)
    assert cohort.groupby(["a", "y"]).size().min() >= 10
    assert cohort_build.release == "artificial"


def test_figures_of_artificial_data_say_so(cohort_build: CohortBuild) -> None:
    flow, quality = cohort_build.flow, cohort_build.quality
    assert "artificial" in words(draw_flow(flow).figure)
    assert "artificial" in words(draw_distributions(quality).figure)
    assert "artificial" in to_html(cohort_document(flow, quality))
    real = {**flow["build"], "artificial": False}
    assert "artificial" not in words(draw_flow({**flow, "build": real}).figure)


def test_the_flow_figure_shows_every_step_with_the_published_counts(demo_builds: dict) -> None:
    built = demo_builds["v2018 published"]
    text = " ".join(words(draw_flow(built.flow).figure))
    for number in ("136 ICU stays", "100 left", "published 38,597", "44 left", "published 11,791"):
        assert number in text
    for step in built.flow["steps"]:
        assert step["reason"] in text


def test_the_demo_given_as_the_demo(demo_shared: CohortBuild) -> None:
    assert demo_shared.release == "demo"


def test_a_shared_page_has_no_small_counts(demo: Path, demo_shared: CohortBuild) -> None:
    """The demo has many: none may be in the page, the figure or the JSON files."""
    built = demo_shared
    stays = set(pd.read_csv(demo / "ICUSTAYS.csv.gz")["icustay_id"])
    page = to_html(cohort_document(built.flow, built.quality))
    raw = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page, re.DOTALL)
    cells = [re.sub(r"<[^>]*>", "", cell).strip() for cell in raw]  # whatever marks them up
    assert "&lt;10" in cells
    assert not [cell for cell in cells if re.fullmatch(r"\d( \(.*\))?", cell)]
    assert not re.search(r"− \d ", " ".join(words(draw_flow(built.flow).figure)))
    for name in ("flow", "quality"):
        content = json.loads(built.out.with_name(f"shared.{name}.json").read_text())
        assert not [n for n in _integers(content) if n < 10]
        assert not set(_integers(content)) & stays


def test_steps_between_hidden_counts_are_told_together(demo_shared: CohortBuild) -> None:
    flow = demo_shared.flow
    together = [stage for stage in flow["stages"] if len(stage["steps"]) > 1]
    assert [(stage["removed"], stage["left"]) for stage in together] == [(50, 40), (24, 16)]
    assert [step for stage in flow["stages"] for step in stage["steps"]] == list(STEPS)
    text = " ".join(words(draw_flow(flow).figure))
    assert "50 in these" in text
    assert "withheld left" not in text


def _integers(content: object) -> list[int]:
    if isinstance(content, dict):
        return [n for value in content.values() for n in _integers(value)]
    if isinstance(content, list):
        return [n for value in content for n in _integers(value)]
    return [content] if isinstance(content, int) and not isinstance(content, bool) else []


def test_small_counts_on_request(demo_builds: dict) -> None:
    built = demo_builds["corr24 published"]
    page = to_html(cohort_document(built.flow, built.quality))
    assert "Small counts are shown" in page
    assert "&lt;10" not in page
    assert "withheld" not in page
    assert len(built.flow["stages"]) == len(STEPS)
    for content in (built.flow, built.quality):
        assert not {"<10", "withheld"} & set(re.findall(r'"([^"]*)"', json.dumps(content)))


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_figure_is_written_whole(cohort_build: CohortBuild, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"flow.{ending}"
    save_figure(draw_flow(cohort_build.flow), path)
    assert path.stat().st_size > 1000
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_commands(tmp_path: Path) -> None:
    run = CliRunner()
    tables, out = tmp_path / "tables", tmp_path / "cohort.parquet"
    made = run.invoke(app, ["artificial", "--out", str(tables), "--stays", "150"])
    assert made.exit_code == 0, made.output
    arguments = ["build", "--mimic", str(tables), "--out", str(out)]
    built = run.invoke(app, [*arguments, "--stays", str(tmp_path / "stays.csv")])
    assert built.exit_code == 0, built.output
    assert "[18/18] Who is in the study?" in built.output
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {
        "tables", "stays.csv", "cohort.parquet", "cohort.work", "cohort.flow.json",
        "cohort.flow.svg", "cohort.quality.json", "cohort.quality.html",
    }  # fmt: skip
    again = run.invoke(app, arguments)
    assert "kept" in again.output


def test_logs_carry_no_identifiers(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    built = CliRunner().invoke(app, ["build", "--mimic", str(demo), "--out", str(out)])
    numbers = {int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", built.output)}
    stays = pd.read_csv(demo / "ICUSTAYS.csv.gz")
    for column in ("icustay_id", "hadm_id", "subject_id"):
        assert not numbers & set(stays[column])
