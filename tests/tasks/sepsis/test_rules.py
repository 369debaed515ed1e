"""Every rule has a patient on either side of it, and the build must tell them apart."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sepsis_rules import invent_rules, packed

from dcem.tasks.sepsis import artificial
from dcem.tasks.sepsis.cohort import build_cohort

EXPECTED = artificial.rule_cases()[1]
CASES = list(EXPECTED.groupby(["options", "rule"], sort=False).groups)


@pytest.fixture(scope="module")
def builds(rules_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """What each set of options says of every stay: its row, and whether it is in the study."""
    folder = tmp_path_factory.mktemp("rules-built")
    answers = {}
    for options in EXPECTED["options"].unique():
        suspicion, features = options.split()
        build = build_cohort(
            rules_folder,
            folder / "cohort.parquet",
            stays=folder / "stays.csv",
            suspicion=suspicion,
            features=features,
        )
        stays = pd.read_csv(folder / "stays.csv").set_index("icustay_id")
        study = pd.read_parquet(build.out).set_index("icustay_id")[["a", "y", "cultured"]]
        answers[options] = stays.join(study).assign(in_study=stays.index.isin(study.index))
    return answers


@pytest.mark.parametrize(("options", "rule"), CASES)
def test_rule(builds: dict[str, pd.DataFrame], options: str, rule: str) -> None:
    chosen = EXPECTED[(EXPECTED["options"] == options) & (EXPECTED["rule"] == rule)]
    wrong = []
    for case in chosen.itertuples():
        got = builds[options].loc[case.icustay_id, case.column]
        if case.value is None or pd.isna(case.value):
            right = pd.isna(got)
        elif isinstance(case.value, str):
            right = got == case.value
        else:
            right = got == pytest.approx(case.value, abs=1e-9)
        if not right:
            wrong.append(f"{case.case}: {case.column} should be {case.value}, got {got}")
    assert not wrong, "\n".join(wrong)


def test_the_cases_that_are_shipped_are_those_that_are_written() -> None:
    shipped = Path(artificial.__file__).with_name(artificial.RULE_CASES).read_bytes()
    assert shipped == packed(invent_rules()), "run PYTHONPATH=tests/support python -m sepsis_rules"


def test_every_rule_is_shown_from_both_sides() -> None:
    values = EXPECTED.groupby(["options", "rule", "column"])["value"]
    one_sided = {rule for (_, rule, _), seen in values if seen.map(str).nunique() < 2}
    two_sided = {rule for (_, rule, _), seen in values if seen.map(str).nunique() > 1}
    assert one_sided <= two_sided


def test_expectations_are_written_beside_the_tables(rules_folder: Path) -> None:
    written = pd.read_csv(rules_folder / "expected.csv")
    assert len(written) == len(EXPECTED) > 500
    assert set(written.columns) == {"rule", "case", "icustay_id", "options", "column", "value"}
