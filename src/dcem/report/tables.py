"""A comparison as a table: for a spreadsheet, for Markdown, for the page."""

from __future__ import annotations

import csv
import io
from math import isnan

from dcem.compare.truth_results import Comparison, MethodResult
from dcem.report.words import conclusions, level, number, percent, with_interval

COLUMNS = ("method", "AUC", "ROC gap", "gap by chance", "AUC difference", "seconds")


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row of text a method, under `COLUMNS`."""
    return [
        (
            method.name,
            with_interval(method.auc),
            with_interval(method.roc_gap),
            number(method.gap_by_chance)
            if isnan(method.gap_by_chance)
            else f"≤ {number(method.gap_by_chance)}",
            with_interval(method.auc_difference),
            f"{method.seconds:.1f}",
        )
        for method in comparison.methods
    ]


def to_csv(comparison: Comparison) -> str:
    """Full precision, one row a method, an empty cell for what is not estimable."""
    stream = io.StringIO()
    records = [_record(method) for method in comparison.methods]
    writer = csv.DictWriter(stream, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def _record(method: MethodResult) -> dict[str, str]:
    record = {"method": method.name, "uses_truth": str(method.uses_truth).lower()}
    estimates = {
        "auc": method.auc,
        "roc_gap": method.roc_gap,
        "auc_difference": method.auc_difference,
        "auc_gain": method.auc_gain,
        "gap_change": method.gap_change,
    }
    for name, estimate in estimates.items():
        for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            record[name + suffix] = "" if estimate is None else _exact(getattr(estimate, part))
    record["gap_by_chance"] = _exact(method.gap_by_chance)
    record["seconds"] = f"{method.seconds:.3f}"
    return record


def _exact(value: float) -> str:
    return "" if isnan(value) else repr(float(value))


def to_markdown(comparison: Comparison) -> str:
    """The whole comparison as Markdown, for those who paste it into another document."""
    lines = [f"# {comparison.title}", "", comparison.description, "", "## In short", ""]
    lines += [f"- {sentence}" for sentence in conclusions(comparison)]
    lines += ["", "## Methods side by side", ""]
    lines += _markdown_table(COLUMNS, [(f"`{name}`", *rest) for name, *rest in rows(comparison)])
    lines += ["", interval_note(comparison), ""]
    lines += [f"- `{m.name}`: {m.what_it_does}" for m in comparison.methods]
    lines += ["", "## Who is tested", ""]
    lines += _markdown_table(GROUP_COLUMNS, group_rows(comparison))
    lines += ["", "## How it was made", ""]
    lines += [f"- {key}: {value}" for key, value in comparison.configuration.items()]
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    return "\n".join([*lines, f"- versions: {versions}", ""])


GROUP_COLUMNS = ("group", "people", "tested", "positives seen", "positives in truth", "missed")


def group_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row of text a group, under `GROUP_COLUMNS`."""
    return [
        (
            group.name,
            f"{group.people:,}",
            f"{group.tested:,} ({percent(group.tested, group.people)})",
            f"{group.positives_seen:,} ({percent(group.positives_seen, group.people)})",
            "unknown"
            if group.positives is None
            else f"{group.positives:,} ({percent(group.positives, group.people)})",
            "unknown"
            if group.positives is None
            else percent(group.positives - group.positives_seen, group.positives),
        )
        for group in comparison.groups
    ]


def interval_note(comparison: Comparison) -> str:
    """What the intervals cover and what they leave out."""
    first, second = (group.name for group in comparison.groups[:2])
    return (
        f"Intervals: {level(comparison)}, from {comparison.resamples:,} resamples of the test "
        "rows. They cover the luck of the test set, not that of the training data or of training "
        "itself. "
        "Gap by chance: what the gap stays below in 95 of 100 random assignments of the groups. "
        f"AUC difference: group {first} minus group {second}."
    )


def _markdown_table(header: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in body]
