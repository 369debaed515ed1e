"""A choice made in the pages, as the command and as the Python that do the same.

The only place where either is written. What a page shows is what is run: `Recipe.words` goes to the
process as it stands, and to the screen quoted for a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcem.app.places import Place
from dcem.app.workspace import Study
from dcem.table.settings import NAME as SETTINGS

WIDE = 76  # columns of a shown command before it is broken


@dataclass(frozen=True)
class Recipe:
    """How to do a step without these pages."""

    words: tuple[str, ...]  # the command, without `dcem` before it
    python: str  # the same in Python
    result: str = ""  # the file that is written last, in the folder of the run

    @property
    def shell(self) -> str:
        """The command as one would type it, a long one over several lines."""
        lines, line = [], "dcem"
        for word in map(shlex.quote, self.words):
            starts = word.startswith("-") or len(line) + len(word) > WIDE
            if starts and len(shlex.join(("dcem", *self.words))) > WIDE:
                lines.append(line + " \\")
                line = "   "
            line += f" {word}"
        return "\n".join([*lines, line])


def words(command: str, *places: str, **options: Any) -> tuple[str, ...]:
    """A command: its places, then `max_rows=5` as the option of that name."""
    return (command, *places, *as_options(options))


def as_options(given: Mapping[str, Any]) -> list[str]:
    """Arguments by name as the words of their options; what was not chosen is left out."""
    said = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            said.append(option)
        elif isinstance(value, list | tuple):
            for one in value:
                said += [option, str(one)]
        elif value not in (None, False, ""):
            said += [option, str(value)]
    return said


def call(function: str, *places: str, **arguments: Any) -> str:
    """A call in Python, over several lines if it is long; what was not chosen is left out."""
    given = [*places]
    for name, value in arguments.items():
        if value not in (None, False, "", (), []):
            given.append(f"{name}={value if isinstance(value, RawPython) else repr(value)}")
    line = f"{function}({', '.join(given)})"
    if len(line) <= WIDE:
        return line
    return f"{function}(\n" + "".join(f"    {one},\n" for one in given) + ")"


class RawPython(str):
    """Python code as it is."""


def opened() -> Recipe:
    """The first screen."""
    return Recipe(("app",), _proposed("'table.csv'"))


def asked(table: str, query: str | None) -> Recipe:
    """Which table of a file, or the only one; what its columns seem to be."""
    given = repr(table) if query is None else f"{table!r}, {query!r}"
    return Recipe(words("init", table, query=query), _proposed(given))


def looked(study: Study) -> Recipe:
    """The preview, and the proposal."""
    return asked(study.shown(study.table), study.place.query)


def _proposed(given: str) -> str:
    return (
        "from dcem.table import propose_roles\n\n"
        f"proposal = propose_roles({given})\n"
        "for one in proposal.suggestions:\n    print(one.role, one.value, one.reason)"
    )


def checked(study: Study) -> Recipe:
    """The roles."""
    if study.roles is None:
        return looked(study)
    return Recipe(
        words("check", study.shown(study.table), config=study.shown(study.folder / SETTINGS)),
        _read_first(study) + "\nprint(table.problem.summary())",
        "log.txt",
    )


def audited(study: Study, out: Path, bounds: float | None = None) -> Recipe:
    """The audit."""
    page, data = (study.shown(out / f"audit.{ending}") for ending in ("html", "json"))
    found = study.positives_only
    audit = call(
        "dcem.audit_found" if found else "dcem.audit_labels",
        "table.problem",
        sources=RawPython("table.encoder.sources"),
        dates=None if found else RawPython("table.encoder.dates"),
        attributes=None if found else RawPython("table.by_attribute()"),
        suspicious=RawPython("{c.name: c.flag for c in table.columns if c.flag}"),
        bounds=bounds,
    )
    python = f"{_read_first(study)}\naudit = {audit}\n{_written(study, 'audit', page)}"
    said = _said(study, "audit", out, bounds=bounds, report=page, json=data)
    return Recipe(said, python, "audit.json")


def compared(study: Study, out: Path, methods: Sequence[str], **how: Any) -> Recipe:
    """The comparison; `how` are options that were set."""
    page = study.shown(out / "comparison.html")
    found = study.positives_only
    how = {name: value for name, value in how.items() if not (found and name == "planted")}
    comparison = call(
        "dcem.compare_found" if found else "dcem.compare_methods",
        "table.problem",
        *([repr(list(methods))] if methods else []),
        truth=RawPython("table.truth") if study.roles and study.roles.truth else None,
        lending=True if study.words == "credit" and not found else None,
        **{"n_folds" if name == "folds" else name: value for name, value in how.items()},
    )
    python = (
        f"{_read_first(study)}\ncomparison = {comparison}\n{_written(study, 'comparison', page)}"
    )
    said = _said(
        study, "compare", out, method=list(methods), **how, report=page, out=study.shown(out)
    )
    return Recipe(said, python, "comparison.json")


def fitted(
    study: Study,
    out: Path,
    method: str,
    comparison: Path | None = None,
    start: Path | None = None,
    judge: bool = False,
    bounds: float | None = None,
) -> Recipe:
    """The model; `auto` goes by a comparison, and so does its card; a `start` is gone on from."""
    folder = study.shown(out / "model")
    named = None if method == "auto" or start else method
    by = study.shown(comparison) if comparison and not start else None
    earlier = study.shown(start) if start else None
    lines = ["import dcem", "import dcem.scoring", ""]
    how: dict[str, Any] = {}
    if named:
        how["method"] = named
    elif by:
        lines.insert(0, "from pathlib import Path\n")
        how["method"] = RawPython(f"dcem.scoring.choice_for(table, Path({by!r}))")
    if earlier:
        lines.append(f"start = dcem.load_model({earlier!r})")
        how["start"] = RawPython("start")
    lines += _reading(study, encoder=RawPython("start.encoder") if earlier else None)
    lines.append(f"model = {call('dcem.scoring.fit_table', 'table', **how)}")
    if bounds is not None:
        lines.insert(0, "from dcem.scoring.bounds import with_bounds\n")
        lines.append(f"model = with_bounds(model, table, {bounds:g})")
    if judge and study.positives_only:
        lines.append("judged = dcem.compare_found(table.problem, [model.name])")
    elif judge:
        lines.append("judged = dcem.compare_methods(table.problem, [model.name], planted=0)")
    elif by:
        lines.insert(0, "from dcem.report.from_json import read_comparison\n")
        lines.append(f"judged = read_comparison({by!r})")
    save = call("model.save", repr(folder), *["judged"] * bool(judge or by), words=study.spoken)
    lines.append(save)
    said = _said(
        study,
        "fit",
        out,
        method=named,
        comparison=by,
        start_from=earlier,
        judge=judge,
        bounds=bounds,
        out=folder,
    )
    return Recipe(said, "\n".join(lines), "model")


def scored(
    study: Study, model: Path, people: Place, out: Path, bounds: float | None = None, **rule: float
) -> Recipe:
    """The scores of a file; with a `capacity` or a `threshold`, the highest are flagged."""
    places = study.shown(model), study.shown(people.path)
    written = study.shown(out / "scores.csv")
    python = (
        "import dcem\nfrom dcem.scoring import predict_file\n"
        + ("from dcem.scoring.decisions import Rule\n\n" if rule else "\n")
        + f"model = dcem.load_model({places[0]!r})\n"
        + call(
            "predict_file",
            "model",
            repr(places[1]),
            repr(written),
            query=people.query,
            rule=RawPython(call("Rule", **rule)) if rule else None,
            bounds=bounds,
        )
    )
    how = {"query": people.query, "bounds": bounds, **rule, "words": study.spoken}
    said = words("predict", *places, out=written, **how)
    return Recipe(said, python, "scores.csv")


def next_tested(study: Study, model: Path, people: Place, out: Path, budget: int) -> Recipe:
    """Whom to test next."""
    places = study.shown(model), study.shown(people.path)
    written = study.shown(out / "next-tests.csv")
    found = call("next_tests", "model", repr(places[1]), str(budget), query=people.query)
    python = (
        "import dcem\nfrom dcem.scoring import next_tests\n\n"
        f"model = dcem.load_model({places[0]!r})\n"
        f"found = {found}\n"
        f"found.table.to_csv({written!r}, index=False)"
    )
    how = {"query": people.query, "out": written, "words": study.spoken}
    said = words("next-tests", *places, budget=budget, **how)
    return Recipe(said, python, "next-tests.csv")


def _said(study: Study, command: str, run: Path, **options: Any) -> tuple[str, ...]:
    """A command that reads the table, with the roles that were kept for its run."""
    config = study.shown(run / SETTINGS)
    return words(command, study.shown(study.table), config=config, **options)


def _read_first(study: Study) -> str:
    return "\n".join(["import dcem", "", *_reading(study), ""])


def _reading(study: Study, **how: Any) -> list[str]:
    """The table as it is read, in Python."""
    table = repr(study.shown(study.table))
    return [
        f"roles = {call('dcem.Roles', **study.settings.roles)}",
        f"table = {call('dcem.read_table', table, 'roles', **study.reading, **how)}",
    ]


def _written(study: Study, result: str, page: str) -> str:
    return call(f"{result}.to_html", repr(page), words=study.spoken)
