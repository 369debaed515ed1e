import csv
import io
from dataclasses import replace
from math import nan

from dcem.metrics.estimate import Estimate
from dcem.report.tables import to_csv, to_markdown


def test_csv_keeps_full_precision_and_leaves_unknown_cells_empty(comparison) -> None:
    first, *rest = comparison.methods
    odd = replace(
        first,
        auc=Estimate(2 / 3, 0.1 + 0.2, 0.9),
        roc_gap=Estimate(nan, reason="one class"),
        gap_by_chance=nan,
    )
    table = to_csv(replace(comparison, methods=(odd, *rest)))
    records = list(csv.DictReader(io.StringIO(table)))
    assert [record["method"] for record in records] == ["y-obs", "dcem", "tested-only", "y-model"]
    assert float(records[0]["auc"]) == 2 / 3
    assert float(records[0]["auc_low"]) == 0.1 + 0.2
    assert records[0]["roc_gap"] == records[0]["auc_gain"] == records[0]["gap_by_chance"] == ""
    assert float(records[1]["gap_change"]) == -0.079
    assert [record["uses_truth"] for record in records] == ["false", "false", "false", "true"]


def test_markdown_holds_the_whole_comparison(comparison) -> None:
    text = to_markdown(comparison)
    assert text.startswith("# A <comparison> of methods\n")
    assert "| `dcem` | .846 [.836, .856] | .025 [.005, .045] | ≤ .020 |" in text
    assert "| Black | 1,000 | 100 (10 %) | 40 (4.0 %) | 300 (30 %) | 87 % |" in text
    assert "Intervals: 90 %, from 1,234 resamples" in text
    assert "- seed: 7" in text
    assert "dcem 0.0.test" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| `")}
    assert widths == {7}
