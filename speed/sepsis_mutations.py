"""Do the sepsis rule cases bite? Change one thing in one query and see whether a case notices.

    python speed/sepsis_mutations.py                    # every change
    python speed/sepsis_mutations.py --sample 100       # a hundred at random
    python speed/sepsis_mutations.py --query 14         # one query's

Every comparison, number, quoted word, aggregate, join, negation and null test of the queries is
changed, one at a time; the artificial rule cases are built with the changed query, and every
expectation is looked at. A change that nothing notices is listed: it either makes no difference, or
a case is missing. A change that makes the query unanswerable counts on its own, not as noticed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dcem.table.messages import InputError
from dcem.tasks.sepsis import stages
from dcem.tasks.sepsis.artificial import rule_cases, write_artificial
from dcem.tasks.sepsis.sources import Mimic, find_tables

# What is changed (a pattern), and into what.
CHANGES: dict[str, tuple[str, str]] = {
    "at most -> less": (r"<=", "<"),
    "less -> at most": (r"<(?![=>])", "<="),
    "at least -> more": (r">=", ">"),
    "more -> at least": (r"(?<![<>])>(?!=)", ">="),
    "lowest -> highest": (r"\bmin\(", "max("),
    "highest -> lowest": (r"\bmax\(", "min("),
    "first -> last": (r"\bfirst\(", "last("),
    "last -> first": (r"\blast\(", "first("),
    "null -> not null": (r"\bIS NULL", "IS NOT NULL"),
    "not null -> null": (r"\bIS NOT NULL", "IS NULL"),
    "null counts -> drops": (r"\bIS DISTINCT FROM", "<>"),
    "optional -> required": (r"\bLEFT JOIN", "JOIN"),
    "or -> and": (r"\bOR\b", "AND"),
    "not -> ": (r"\bNOT (?!NULL|BETWEEN|IN)", ""),
    "not in -> in": (r"\bNOT (?=BETWEEN|IN)", ""),
    "a word": (r"(?<!THEN )'([^'\n]+)'", r"'\1~'"),  # after THEN it is a name, not a rule
    "a number": (r"(?<![\w.'])\d+\.?\d*(?![\w.'])", ""),
}


@dataclass(frozen=True)
class Mutation:
    """One change: where, what it was, and the query with it."""

    query: str
    line: str
    what: str
    text: str


def mutations(file: str) -> Iterator[Mutation]:
    """Every single change of one query; comments and the ordering of rows are left alone."""
    text = stages.query(file)
    quiet = [range(*m.span()) for m in re.finditer(r"--[^\n]*|\nORDER BY[^\n]*$", text)]
    for what, (pattern, into) in CHANGES.items():
        for found in re.finditer(pattern, text):
            if any(found.start() in part for part in quiet):
                continue
            new = _other(found.group()) if what == "a number" else found.expand(into)
            start = text.rfind("\n", 0, found.start()) + 1
            line = text[start : text.find("\n", found.end())].strip()
            changed = text[: found.start()] + new + text[found.end() :]
            yield Mutation(file, line, f"{what}: {found.group()} -> {new}", changed)


def _other(number: str) -> str:
    """A number a little larger: 1 for whole ones, a tenth for others."""
    return str(int(number) + 1) if number.isdigit() else f"{float(number) * 1.1:.6g}"


class Cases:
    """The rule cases, and whether a build answers them all."""

    def __init__(self, folder: Path) -> None:
        self.tables: Mimic = find_tables(write_artificial(folder / "tables", "rules"))
        self.work = folder / "work"
        self.expected = rule_cases()[1]

    def noticed(self) -> str | None:
        """The first case that is not as expected; None if all are."""
        for options, part in self.expected.groupby("options", sort=False):
            stays = self._build(str(options))
            for case in part.itertuples():
                if not _same(stays.at[case.icustay_id, case.column], case.value):
                    return f"{case.rule}: {case.case}"
        return None

    def _build(self, options: str) -> pd.DataFrame:
        suspicion, features = options.split()
        chosen = {"suspicion": suspicion, "features": features}
        with stages.Stages(self.tables, self.work, chosen, "2GiB", 1) as run:
            for _ in run.run(lambda _: None):
                pass
            stays = run.frame("SELECT * FROM built.study").set_index("icustay_id")
        stays["in_study"] = stays["left_out_because"].isna()
        stays["y"], stays["cultured"] = stays["sepsis3"], stays["blood_culture_time"].notna()
        stays[["a", "y", "cultured"]] = (
            stays[["a", "y", "cultured"]].astype(object).where(stays["in_study"], None)
        )
        return stays


def _same(got: object, expected: object) -> bool:
    if expected is None or pd.isna(expected):
        return bool(pd.isna(got))
    if isinstance(expected, str):
        return str(got) == expected
    return bool(pd.notna(got)) and abs(float(got) - float(expected)) < 1e-9  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--query", help="only queries whose name begins with this")
    parser.add_argument("--sample", type=int, help="so many changes at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [file for file in stages.QUESTIONS if file.startswith(options.query or "")]
    files = [file for file in files if not file.startswith("00")]  # counts rows, decides nothing
    changes = [one for file in files for one in mutations(file)]
    if options.sample is not None and options.sample < len(changes):
        rng = np.random.default_rng(options.seed)
        chosen = np.sort(rng.choice(len(changes), options.sample, replace=False))
        changes = [changes[i] for i in chosen]
    original, counted, began = stages.query, Counter[str](), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(Path(folder))
        assert cases.noticed() is None, "the queries as they are do not pass"
        for one in changes:
            stages.query = lambda file, one=one: one.text if file == one.query else original(file)
            try:
                outcome = "missed" if cases.noticed() is None else "noticed"
            except (InputError, KeyError, ValueError):
                outcome = "unanswerable"
            counted[outcome] += 1
            if outcome == "missed":
                print(f"missed  {one.query[:2]}  {one.what}\n            {one.line}", flush=True)
    stages.query = original
    seconds = time.perf_counter() - began
    print(f"{len(changes)} changes in {seconds:.0f} s: {dict(counted)}")


if __name__ == "__main__":
    main()
