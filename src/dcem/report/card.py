"""The card of a model as a document: how good it is, for whom, at which threshold.

The numbers are those of a comparison in which the method scored people that it was not fitted to
(`dcem compare`, or the cross-validation of one method by `dcem fit`). The model itself was fitted
to all of them afterwards. Without such a comparison the card says that nobody has judged it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dcem import __version__
from dcem.audit.positives_only_findings import FOUND_ASSUMPTION
from dcem.compare.positives_only import FoundComparison
from dcem.compare.results import Judgement, TableComparison
from dcem.estimation.measures import WHEN_ACTING
from dcem.estimation.results import EVERYBODY, Target
from dcem.extras import made_with
from dcem.metrics.estimate import Estimate
from dcem.report import bounds
from dcem.report import compare_opening as first_screen
from dcem.report import document as doc
from dcem.report.compare_tables import shown_groups
from dcem.report.drivers import driver_blocks
from dcem.report.fitted import (
    fit_settings,
    method_notes,
    people_blocks,
    what_it_gives,
    what_it_learnt,
)
from dcem.report.shared import listed_findings, of_a_draw, rows_used, sections, with_worst
from dcem.scoring.model import TableModel
from dcem.scoring.untested import HIDDEN, UntestedRisk
from dcem.table.roles import Roles
from dcem.text import capitalised, group, listed, number, of_100, percent

ACCEPTABLE = 0.7  # an AUC from which on ranking is called acceptable (Hosmer and Lemeshow)
FOUND = "true_positive_rate"
UNJUDGED = "It is not known how good the model is"
LIMITS = (
    "Not that it is as good elsewhere: other people, and other ways of deciding whom to test, "
    "change the numbers.",
    "Not that groups are treated alike because their numbers are alike: the label may mean "
    "something else in each.",
)


def card_document(
    model: TableModel, comparison: TableComparison | FoundComparison | None = None
) -> doc.Document:
    """The card of a model; `comparison` judged its method on the table it was fitted to."""
    found = judged = target = None
    if isinstance(comparison, FoundComparison):
        found, comparison = comparison if model.judged_by(comparison) else None, None
    if comparison is not None:
        target = next(iter(first_screen.shown_targets(comparison)), None)
        own = model.result_in(comparison)
        judged = own.judgements[target.key] if own and target else None
    why = [f"`{model.name}` was chosen because {model.why}."] if model.why else []
    driving = driver_blocks(model.testing_effects, model.effects, "its score")
    made = (
        *(_results(comparison, judged, target) if comparison and judged and target else ()),
        ("untested", "Risk of the untested: an extrapolation", _untested(model)),
        ("bounds", bounds.HEADING, _bounds_section(model)),
        ("drivers", "What drives its score, and what drives testing", driving),
        ("groups", "For whom", () if found is None else (_found_groups(found, model),)),
        (
            "trained",
            "What it was trained on",
            people_blocks(
                model.estimator,
                "`like_tested` says whether a row is like somebody tested",
                positives_only=model.roles.positives_only,
            ),
        ),
        ("method", "The method", (doc.Text((*why, *method_notes(model.estimator))),)),
        ("table", "The table", _fitted_to(model)),
    )
    names = {str(name) for name in model.estimator.training_counts_.index}
    return doc.Document(
        title=f"Model card: {model.name}",
        lead=f"It gives {_given(model)}, from features alone. "
        f"Fitted to {model.source.name}. {what_it_learnt(model.estimator)}".rstrip(),
        opening=_with_dominant(
            _judged_opening(comparison, judged, target, model)
            if found is None
            else _found_opening(found, model),
            model,
        ),
        findings=None,
        sections=sections(made, _facts(model, comparison or found)),
        footer=f"Made with dcem {__version__}. No individual row is on this page.",
        names=frozenset([*names, *model.encoder.columns, model.source.name]),
        data={"judged": judged, "target": target},
    )


def _with_dominant(opening: doc.Opening, model: TableModel) -> doc.Opening:
    """The first screen, above it that a few columns carry the score, if they do."""
    if model.dominant is None:
        return opening
    worst = replace(model.dominant, headline=model.dominant.headline.removesuffix("."))
    return replace(opening, verdict=replace(opening.verdict, worst=worst))


def _given(model: TableModel) -> str:
    """What its numbers are, and of which outcome."""
    roles = model.roles
    yes = " or ".join(f"`{value}`" for value in roles.positive) or "yes"
    that = "that" if model.estimator.calibrated else "for how likely it is that"
    if roles.no_record:
        that = "by how likely it is, relative to others, that the truth of"
    return f"{what_it_gives(model.estimator)} {that} `{roles.label}` is {yes}"


def _judged_opening(
    comparison: TableComparison | None,
    judged: Judgement | None,
    target: Target | None,
    model: TableModel,
) -> doc.Opening:
    if comparison is None or judged is None or target is None or not judged.auc.estimable:
        why = "" if judged is None else f" Why: {judged.auc.reason}."
        verdict = doc.Verdict(
            "caution",
            UNJUDGED,
            (
                f"No comparison of this table with `{model.name}` was found when it was fitted."
                f"{why}",
                "Judge it before anybody relies on it: compare methods on the table, then fit "
                "again, with the model beside the result.",
            ),
            "Nothing has been estimated.",
        )
        return doc.Opening(verdict, (), None, LIMITS)
    times, _ = of_100(judged.auc.value, judged.auc.low, judged.auc.high)
    everybody = target.key != "tested"
    alike = first_screen.fairness(judged, comparison)
    sentences = [
        f"{first_screen.ranked_right(judged.auc)}.{_behind(comparison, target)}",
        *first_screen.beside_plain(comparison, model.result_in(comparison), target),
        *_finds(comparison, judged, target),
        *_untested_in_short(model),
    ]
    off = first_screen.risks_of_groups(judged)
    sentences += filter(None, [first_screen.of_the_record(comparison), alike, off])
    of = f", among {target.whom}" if target.reach < 1 else ""
    if not everybody:
        of = ", among the tested; nothing is known of the others"
    answer = f"It ranks {times} of 100 pairs of people in the right order{of}"
    if not judged.auc.low > 0.5:
        answer = "It cannot be distinguished from chance"
    doubtful = not judged.auc.low > 0.5 or "not serve" in alike or off
    severity = "serious" if not everybody else "caution" if doubtful else "note"
    if severity == "note" and judged.auc.low >= ACCEPTABLE:
        answer = f"It ranks well: {times} of 100 pairs of people in the right order{of}"
        if not judged.gap_pair or judged.roc_gap.high <= first_screen.ALIKE:  # NaN: not estimable
            severity = "fine"
    verdict = doc.Verdict(severity, answer, tuple(sentences), target.assumption)
    about_it = listed_findings(first_screen.about_method(comparison, model.name))
    return doc.Opening(
        with_worst(verdict, about_it, first_screen.TOLD),
        (
            doc.KeyNumber(doc.estimate(judged.auc), f"AUC {first_screen.of_whom(target)}"),
            _worst(judged, target),
            first_screen.how_far_off(
                judged.calibration_error, "how far its scores are off as risks"
            ),
        ),
        _picture(comparison, judged, target),
        (*first_screen.not_of_everybody(target), *of_a_draw(comparison), *LIMITS),
    )


def _behind(comparison: TableComparison, target: Target) -> str:
    """The rows that an AUC rests on, as a sentence; nothing where their counts are withheld."""
    every = shown_groups(comparison)[-1]
    counts = [every.get(key) for key in ("people", "tested", "positives_seen", "positives")]
    rows, tested, seen, positives = (one if isinstance(one, int) else None for one in counts)
    if target.key == "truth":
        if not rows or not positives:
            return ""
        return f" This rests on {rows:,} rows, {positives:,} of them positive."
    if not tested:
        return ""
    found = f", {seen:,} of them positive" if seen else ""
    return f" This rests on {tested:,} tested rows{found}."


def _untested_in_short(model: TableModel) -> list[str]:
    """The risk of the untested in a sentence, with its limits."""
    every = next(iter(model.untested), None)
    if every is None:
        return []
    if not every.borrowed.estimable:
        why = every.borrowed.reason
        return [f"The risk of the untested is an extrapolation without limits: {why}."]
    score = f"its mean score is {percent(every.score, 1)}, but " * model.estimator.calibrated
    beyond = (
        f" That lets the {percent(every.beyond, 1)} of them who are out of reach of the tests all "
        "have the outcome, or none of them."
    )
    return [
        f"The risk of the untested is an extrapolation: {score}{percent(every.low, 1)} to "
        f"{percent(every.high, 1)} is possible.{beyond * bool(every.beyond)}"
    ]


def _untested(model: TableModel) -> Iterator[doc.Block]:
    """The risk of the untested by group, its limits, and where overlap fails."""
    if not model.untested:
        return
    calibrated = model.estimator.calibrated
    yield doc.Text(
        (
            "No test says what untested people have. Their risk is borrowed from tested people "
            "with the same features. A cause that nobody recorded may make it wrong: the limits "
            f"let the odds of untested people be up to {HIDDEN:g} times those of tested people "
            f"like them, or {HIDDEN:g} times less, and include chance. A stronger cause would move "
            "them further. No table can rule that out.",
        )
    )
    rows = []
    for one in model.untested:
        limits: doc.Cell = f"{percent(one.low, 1)} to {percent(one.high, 1)}"
        if not one.borrowed.estimable:
            limits = doc.Missing("", "0 to 100 %: no limits")
        score = {"mean score": doc.estimate(one.score, "percent")} if calibrated else {}
        rows.append(
            {
                "untested people": doc.whose(one.group),
                **score,
                "from tested people like them": doc.estimate(one.borrowed, "percent"),
                "possible": limits,
                "out of reach of the tests": percent(one.beyond, 1) if one.beyond else "none",
            }
        )
    note = (
        "Mean scores are of those within reach of the tests. The limits are of all: those out of "
        "reach may all have the outcome, or none of them."
    ) * any(one.beyond for one in model.untested)
    yield doc.listing("", rows, note=note)
    remarks = []
    for way, than in (("low", "below"), ("high", "above")):
        if off := [one.group for one in model.untested if calibrated and one.off == way]:
            who = listed([_whose(name) for name in off])
            remarks.append(
                f"Mean score {than} what tested people like them suggest: {who}. Read these "
                f"scores as too {way}."
            )
    if lost := [one for one in model.untested if one.beyond or not one.borrowed.estimable]:
        each = listed([f"{_whose(one.group)} ({_why_beyond(one)})" for one in lost], len(lost))
        remarks.append(
            f"Overlap fails, or too few were tested: {each}. For these people the model guesses, "
            "and nothing limits how far it is off."
        )
    if remarks:
        yield doc.Text(tuple(remarks), bullets=True)


def _whose(name: str) -> str:
    return "everybody untested" if name == EVERYBODY else group(name)


def _why_beyond(one: UntestedRisk) -> str:
    if not one.borrowed.estimable:
        return one.borrowed.reason.removeprefix(f"in group {one.group}, ")
    return f"{percent(one.beyond, 1)} of the untested are out of reach"


def _found_opening(comparison: FoundComparison, model: TableModel) -> doc.Opening:
    """The first screen where nobody recorded who was tested."""
    own = model.result_in(comparison)
    times, about = of_100(own.within.value, own.within.low, own.within.high)
    stated = comparison.stated_rates
    with_it = "with the outcome and one without" if stated else "found positive and one not"
    doubtful = not own.within.low > 0.5  # NaN, too
    answer = f"It ranks {times} of 100 pairs of people in the right order, by the found positives"
    verdict = doc.Verdict(
        "caution",
        "It cannot be distinguished from chance" if doubtful else answer,
        (
            f"Of two people of one group, one {with_it}, it ranks the first higher {times} times "
            f"in 100 ({about}; by chance, 50).",
            f"Numbers are for the outcome, at the stated rates of being found: {stated}."
            if stated
            else "Its scores rank people. They are not probabilities of the outcome: nobody "
            "recorded who was tested, and how many positives are never found is not known.",
        ),
        f"Right if: {FOUND_ASSUMPTION}",
    )
    within, across = (
        "AUC against the found",
        "how often a positive ranks above anybody, across groups",
    )
    if stated:
        within, across = "AUC for the outcome", "the same of all together"
    numbers = (
        doc.KeyNumber(doc.estimate(own.within), f"{within}, within groups"),
        doc.KeyNumber(doc.estimate(own.across), across),
    )
    return doc.Opening(verdict, numbers, None, (*of_a_draw(comparison), *LIMITS))


def _found_groups(comparison: FoundComparison, model: TableModel) -> doc.Table:
    """How well each group is ranked, by who was found in it."""
    own = model.result_in(comparison)
    if comparison.stated_rates:
        rows = [
            (doc.Name(name), doc.estimate(area), doc.estimate(own.calibration.get(name), "points"))
            for name, area in own.groups.items()
        ]
        heads = ("group", "AUC for the outcome", "risk too high (+) or too low (-)")
        return doc.table("", heads, rows)
    between = [
        (doc.Name(name), doc.estimate(area), f"{number(low, 2)} to {number(high, 2)}")
        for name, area in own.groups.items()
        for low, high in [own.outcome[name]]
    ]
    heads = ("group", "AUC against the found", "AUC for the outcome, between")
    return doc.table("", heads, between, words=(2,))


def _finds(comparison: TableComparison, judged: Judgement, target: Target) -> list[str]:
    """Whom acting on it finds, and whom it misses: a good ranking may still miss most."""
    found = _when_acting(judged, FOUND, EVERYBODY)
    if found is None:
        return []
    if not found.estimable:
        return [f"What acting on {comparison.decision} finds cannot be estimated: {found.reason}."]
    some, about = of_100(found.value, found.low, found.high)
    among = "tested " * (target.key == "tested")
    return [
        f"Acting on {comparison.decision} finds about {some} of 100 {among}people with the outcome"
        f"{_within(target)} ({about}) and misses {100 - int(some)}."
    ]


def _within(target: Target) -> str:
    """That people are counted within reach of the tests alone, where some are not."""
    return ", within reach of the tests," if target.reach < 1 else ""


def _worst(judged: Judgement, target: Target) -> doc.KeyNumber:
    """The group that is ranked worst, or precision where there are no groups."""
    known = {name: one for name, one in judged.group_auc.items() if one.estimable}
    if len(known) > 1:
        worst = min(known, key=lambda name: known[name].value)
        whole = len(known) == len(judged.group_auc)
        of = "of any group" if whole else "of the groups that can be judged"
        return doc.KeyNumber(doc.estimate(known[worst]), f"AUC in group {worst}, the lowest {of}")
    share, precision = next(iter(judged.precision_at_capacity.items()))
    of = f" of {target.whom}" if target.reach < 1 else ""
    what = f"of the {percent(share)}{of} with the highest scores have the outcome"
    return doc.KeyNumber(doc.estimate(precision, "percent"), what)


def _picture(comparison: TableComparison, judged: Judgement, target: Target) -> doc.Dots:
    """Ranking, and whom acting finds, of everybody and of each group; more is in a table below."""
    areas = {EVERYBODY: judged.auc, **judged.group_auc}
    rows = [
        doc.DotRow(
            doc.whose(name, target.reach),
            (
                doc.briefly(areas.get(name)),
                doc.briefly(_when_acting(judged, FOUND, name), "percent"),
            ),
            marked=name == EVERYBODY,
        )
        for name in _everybody_and_groups(comparison)
    ]
    return doc.Dots(
        f"How good, and for whom ({first_screen.estimated(target)})",
        ("AUC", WHEN_ACTING[FOUND].words),
        tuple(rows),
        f"The {WHEN_ACTING[FOUND].words}: how many of those with the outcome are found when one "
        f"acts on {comparison.decision}. {first_screen.footnote(comparison, target)}",
    )


def _when_acting(judged: Judgement, measure: str, group: str) -> Estimate | None:
    return judged.when_acting.get(measure, {}).get(group)


def _everybody_and_groups(comparison: TableComparison) -> list[str]:
    groups = [group.name for group in comparison.groups]
    return [EVERYBODY, *(groups if len(groups) > 1 else ())]


def _results(
    comparison: TableComparison, judged: Judgement, target: Target
) -> Iterator[tuple[str, str, tuple[doc.Block, ...]]]:
    names = _everybody_and_groups(comparison)
    acting = doc.listing(
        f"At this decision, {target.name}",
        [
            {
                "group": doc.whose(name, target.reach),
                **{
                    measure.words: doc.estimate(_when_acting(judged, key, name), "percent")
                    for key, measure in WHEN_ACTING.items()
                },
            }
            for name in names
        ],
    )
    acts = f"One acts on {comparison.decision}."
    if target.reach < 1:
        acts += " Numbers are for those within reach, of whom this may be another share."
    one_acts = doc.Text((acts,))
    yield "acting", "When somebody acts on it", (one_acts, acting)
    areas = {EVERYBODY: judged.auc, **judged.group_auc}
    ranking = doc.listing(
        "Ranking, and mean predicted minus estimated risk",
        [
            {
                "group": doc.whose(name, target.reach),
                "AUC": doc.estimate(areas.get(name)),
                "risk too high (+) or too low (-)": doc.estimate(
                    judged.calibration_in_the_large.get(name), "points"
                ),
            }
            for name in names
        ],
        note=f"{capitalised(target.name)}. {target.assumption}",
    )
    yield "groups", "For whom", (ranking,)


def _bounds_section(model: TableModel) -> Iterator[doc.Block]:
    if model.bounds is not None:
        yield bounds.assumed(model.bounds)
        yield from bounds.people(model.bounds, bounds.WIDENED)
        yield from bounds.coverage(model.coverage)


def _fitted_to(model: TableModel) -> Iterator[doc.Block]:
    source, roles = model.source, model.roles
    size = f"{source.rows:,} rows"
    if source.all_rows:
        size = f"all {source.drawn_from:,} rows (scales and counts from {size} drawn from them)"
    elif source.drawn_from:
        size += f" drawn from {source.drawn_from:,}"
    means = {"file": f"{source.name}, {size}, {source.columns} columns", "SHA-256": source.sha256}
    if model.baseline is not None and model.baseline.period is not None:
        means["period"] = " to ".join(model.baseline.period)
    known = {} if roles.positives_only else {"tested": [f"where {roles.label} is known"]}
    said = known | roles.to_plain()
    between = {"tested": " or ", "group": " & "}
    for name in (name for name in Roles.settable() if name in said):
        value = said[name]
        text = between.get(name, ", ").join(value) if isinstance(value, list) else str(value)
        means[name.replace("_", " ")] = "yes" if value is True else text
    yield doc.Facts(means)
    rows = [
        (doc.Name(one.name), one.kind, doc.Name(", ".join(one.features)))
        for one in model.encoder.encodings
    ]
    columns = doc.table(
        "Columns that a table needs to be scored", ("column", "kind", "features"), rows
    )
    yield doc.Fold(f"Its {len(rows)} columns", (columns,))


def _facts(
    model: TableModel, comparison: TableComparison | FoundComparison | None
) -> dict[str, str]:
    facts = fit_settings(model.estimator)
    weights = getattr(model.estimator, "weights_", None)
    if isinstance(weights, Mapping):
        parts = sorted(weights.items(), key=lambda part: -part[1])
        facts["shares of its parts"] = ", ".join(f"{one} {percent(by, 0)}" for one, by in parts)
    if model.started_from is not None:
        earlier = model.started_from
        facts["started from"] = (
            f"a model of {earlier.name}, {earlier.rows:,} rows, SHA-256 {earlier.sha256}; the "
            "parts were reweighted and recalibrated with tests that it had not seen"
        )
    if comparison is not None:
        facts["judged by"] = comparison.configuration.get("judged by", "")
        facts["judged on"] = rows_used(comparison)
        if model.started_from is not None:
            facts["judged by"] += ", the method fitted from scratch"
    return {**facts, "versions": made_with()}
