"""The gallery runs, finds what was put into its made-up people, and its pages show its code."""

import re
from typing import Any

import numpy as np
import pytest
from choices import some
from pages import DOCS, generator

examples = generator("examples")


def near(estimate: Any, truth: float) -> bool:
    return abs(estimate.value - truth) < 3 * (estimate.high - estimate.low) / 4  # three errors


def stops(names: dict[str, Any]) -> None:
    rate = {row.group: row for row in names["audit"].testing}
    assert rate["B"].difference.low > 0.1
    found = {row.group: row for row in names["audit"].yields}
    assert found["B"].at_equal_probability.high < 0


def lender(names: dict[str, Any]) -> None:
    strict = names["dcem"].audit_labels(names["lend"](names["strict"]))
    assert not strict.prevalence[0].doubly_robust.estimable
    assert near(names["everybody"].doubly_robust, names["defaults"].mean())


def survey(names: dict[str, Any]) -> None:
    for row in names["audit"].prevalence:
        assert near(row.doubly_robust, names["truth"].get(row.group, names["ill"].mean()))
    assert names["auc"].loc["tested-only", "dr"] > names["auc"].loc["y-obs", "dr"]


def next_tests(names: dict[str, Any]) -> None:
    ill, tested = names["ill"], names["tested"]
    chances = names["chosen"].table["probability"].to_numpy()
    assert chances.min() > 0
    assert chances.sum() == pytest.approx(300)
    weighted = np.average(ill[names["rows"]], weights=names["weight"])
    assert abs(weighted - ill[~tested].mean()) < abs(ill[tested].mean() - ill[~tested].mean())


def pipeline(names: dict[str, Any]) -> None:
    assert names["search"].best_params_ == {"polynomialfeatures__degree": 2}
    assert names["search"].best_score_ > 0.7


# The others audit, compare and search several times (pipelines: tests/test_docs.py, too).
EVERY_TIME = ["stops", "next_tests"]
CHECKS = {check.__name__: check for check in (stops, lender, survey, next_tests, pipeline)}


def test_every_example_is_checked_and_shown() -> None:
    assert set(examples.SCRIPTS) == set(CHECKS)
    written = (DOCS / "examples" / "index.md").read_text(encoding="utf-8")
    assert written == examples.index(), "run: python docs/make/examples.py"


@pytest.mark.parametrize("name", some(list(examples.SCRIPTS), EVERY_TIME))
def test_example(name: str) -> None:
    """Outputs may differ in a last digit elsewhere; text and code may not."""

    def without_outputs(page: str) -> str:
        return re.sub(r"```text\n.*?```\n", "", page, flags=re.DOTALL)

    names: dict[str, Any] = {}
    made = examples.page(name, names)
    CHECKS[name](names)
    written = (DOCS / "examples" / f"{name}.md").read_text(encoding="utf-8")
    assert without_outputs(written) == without_outputs(made), "run: python docs/make/examples.py"
