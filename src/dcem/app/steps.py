"""The steps that compute something: what can be chosen, and the command that a choice makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dcem import methods
from dcem.app import commands
from dcem.app.commands import Recipe
from dcem.app.forms import Posted
from dcem.app.runs import Run, next_folder, runs
from dcem.app.workspace import Study
from dcem.compare.fitting import default_methods
from dcem.compare.positives_only import usual_methods
from dcem.methods.registry import ENTRIES, works_here
from dcem.table.messages import InputError
from dcem.table.settings import NAME as SETTINGS
from dcem.table.settings import read_settings

TITLES = {
    "times": "How long will it take?",
    "audit": "Is the labelling biased?",
    "compare": "Which method?",
    "fit": "Fit a model",
    "score": "Score people",
    "next-tests": "Whom to test next?",
}
ROWS, FOLDS, PLANTED, BUDGET = 10_000, 5, 3, 100
MOST = 1_000_000_000


def recipe(study: Study, step: str, form: Posted) -> Recipe:
    """The command for the next run of a step; without a form, with what is proposed."""
    out = next_folder(study.folder, step)
    if step == "times":
        return commands.checked(study)
    if step == "audit":
        return commands.audited(study, out, form.strength())
    if step == "compare":
        chosen = [name for name in form.fields.get("method", ()) if name in comparable(study)]
        if form.fields and not chosen:
            raise InputError("No method was chosen. Choose one or more to compare.")
        ranges = {
            "folds": (FOLDS, 2, 50),
            "max_rows": (ROWS, 100, MOST),
            "planted": (PLANTED, 0, 100),
        }
        how = {name: form.whole(name, *of) for name, of in ranges.items()}
        changed = {name: value for name, value in how.items() if value != ranges[name][0]}
        named = [] if set(chosen) == set(usual_of(study)) else chosen
        return commands.compared(study, out, named, **changed, bounds=form.strength())
    if step == "fit":
        method = form.get("method", "auto")
        if method != "auto" and method not in fittable(study):
            raise InputError(f"There is no method {method!r} that can be fitted here.")
        start = earlier(study).get(form.get("start"))
        judge = bool(form.get("judge"))
        comparison = comparison_of(study)
        return commands.fitted(study, out, method, comparison, start, judge, form.strength())
    model = latest_output(study, "fit")
    if model is None:
        raise InputError("Fit a model first.")
    if step == "score":
        share, risk = (form.whole(name, 0, 0, 100) / 100 for name in ("flagged", "risk"))
        if share and risk:
            raise InputError("Flag people by share or by risk, not by both.")
        rule = {"capacity": share} if share else {"threshold": risk} if risk else {}
        return commands.scored(study, model, study.people, out, form.strength(), **rule)
    budget = form.whole("budget", BUDGET, 0, MOST)
    return commands.next_tested(study, model, study.people, out, budget)


def options(study: Study, step: str) -> dict[str, Any]:
    """What the form of a step offers."""
    offered: dict[str, dict[str, Any]] = {
        "compare": {
            "methods": {name: name in usual_of(study) for name in comparable(study)},
            "rows": ROWS,
            "folds": FOLDS,
            "planted": PLANTED,
        },
        "fit": {
            "methods": fittable(study),
            "compared": comparison_of(study) is not None,
            "earlier": list(earlier(study)),
        },
        "score": {"people": study.people},
        "next-tests": {"people": study.people, "budget": BUDGET},
    }
    return offered.get(step, {})


def usual_of(study: Study) -> tuple[str, ...]:
    """What is compared unless methods are named."""
    if study.roles and study.positives_only:
        return usual_methods(stated=not study.roles.no_record)
    return default_methods(bool(study.roles and study.roles.decider))


def comparable(study: Study) -> list[str]:
    """Methods that can be compared without the truth, the usual ones first."""
    return list(dict.fromkeys([*usual_of(study), *fittable(study)]))


def fittable(study: Study) -> list[str]:
    """Methods that work here, learn without the truth and score without the group.

    Where nobody recorded who was tested, those that need no such record.
    """
    here = list(filter(works_here, methods.names(usable=True)))
    if study.roles and study.roles.no_record:
        here = [name for name in here if not ENTRIES[name].needs_record]
    return [name for name in here if not methods.make(name).needs_group]


def latest_output(study: Study, step: str) -> Path | None:
    """What the latest run of a step that ended well has written last."""
    return next((run.result for run in runs(study.folder, step) if run.state == "done"), None)


def comparison_of(study: Study) -> Path | None:
    """The latest comparison of the table as it is now, with the roles that it has now."""
    for run in runs(study.folder, "compare"):
        if run.state == "done" and run.result.stat().st_mtime_ns > study.place.stamp[0]:
            same = read_settings(run.folder / SETTINGS).roles == study.settings.roles
            return run.result if same else None
    return None


def earlier(study: Study) -> dict[str, Path]:
    """Models that a fit can go on from: those of all tables, if it is known how tests were drawn.

    New tests are told from old ones by their probabilities.
    """
    if study.roles is None or study.roles.testing_probability is None:
        return {}
    return outputs_of(study.folder.parent, "fit")


def outputs_of(work: Path, step: str) -> dict[str, Path]:
    """What the runs of a step that ended well have written, of all tables: its name, its place."""
    found = [run for folder in sorted(work.iterdir()) for run in runs(folder, step)]
    done = [run for run in found if run.state == "done"]
    return {f"{run.folder.parent.name}/{run.name}": run.result for run in done}


def recipe_of(run: Run) -> Recipe:
    """What a run did, as it was started."""
    same = run.folder / "same.py"
    python = same.read_text(encoding="utf-8") if same.is_file() else ""
    return Recipe(tuple(run.job["command"]), python.rstrip())


def shell_script(study: Study) -> str:
    """All commands that were run to an end, in their order."""
    done = [run for run in runs(study.folder) if run.state == "done"]
    in_order = sorted(done, key=lambda run: float(run.job["time"]))
    return "\n\n".join(["#!/bin/sh", *(recipe_of(run).shell for run in in_order), ""])
