"""Whether a model still holds, as a document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dcem.estimation.results import EVERYBODY
from dcem.extras import made_with
from dcem.monitor.baseline import UNLIKE
from dcem.monitor.results import Change, Monitoring
from dcem.report import document as doc
from dcem.report.shared import listed_findings, sections, with_worst
from dcem.text import count, counted, groups

ANSWERS = {
    "holds": ("fine", "Yes, as far as can be seen"),
    "recalibrate": ("serious", "Not as a risk: recalibrate it"),
    "refit": ("serious", "No: it ranks people worse than it did"),
    "cannot tell": ("caution", "It cannot be determined yet"),
}
CLEAR = (
    "Clear: more than chance, given how many numbers a question has, and large enough to matter."
)
MOST_GROUPS = 40  # in the picture
LEAST, MOST = 3, 12  # columns that are shown at once: those that changed, or the first


def monitor_document(found: Monitoring, title: str = "Does the model still hold?") -> doc.Document:
    """The document of what monitoring found."""
    facts = {**found.data, **found.configuration, "versions": made_with()}
    findings = listed_findings(found.findings)
    severity, answer = ANSWERS[found.answer]
    own = next(one for one in found.findings if one.key == found.answer.replace(" ", "-"))
    auc = _of_everybody(found, "auc")
    if found.answer == "refit" and found.ranks_by_chance:
        answer = "No: it does not clearly rank people better than chance"
    elif found.answer == "refit" and not auc.clear:
        answer = f"Not for {groups(own.groups)}: it ranks them worse than it did"
    text = [own.text]
    off = next((one for one in found.findings if one.key == "groups-off"), None)
    if found.answer == "holds" and off is not None:
        severity, answer = off.severity, f"Not as a risk for {groups(off.groups)}"
        text.insert(0, f"{off.headline}.")
    verdict = doc.Verdict(severity, answer, (*text, *_more(found)), found.assumption)
    left_out = found.rows - found.rows_judged
    late = f" {count(left_out)} of them are too recent to be judged." if left_out else ""
    made = (
        ("comes", "Who arrives?", _comes(found)),
        ("tested", "Who is tested?", _testing_section(found)),
        ("found", "What is found?", _prevalence_section(found)),
        ("holds", "Does the model hold?", _performance_section(found)),
    )
    return doc.Document(
        title=title,
        lead=f"{count(found.rows)} new rows ({count(found.people)} people), compared with the "
        f"{count(found.fitted_rows)} that the model was fitted to.{late}",
        opening=doc.Opening(
            with_worst(verdict, findings, (own.key,)),
            tuple(_key_numbers(found)),
            _picture(found),
            (
                "Not that the model, or anybody, caused a change.",
                "Nothing about differences between tested and untested people with the same "
                "features: numbers beyond the tested assume that there are none.",
            ),
        ),
        findings=findings,
        sections=sections(made, facts),
        footer="Made with dcem. No individual row is on this page.",
        names=frozenset(
            [
                *(one.of for one in found.changes),
                *(one.column for one in found.columns if one.column != UNLIKE),
                *found.by_attribute,
            ]
        ),
        data={"made": facts, **vars(found)},
    )


def _more(found: Monitoring) -> Iterator[str]:
    """What else changed, in one sentence."""
    changed = [
        words
        for words, is_so in (
            ("who arrives", any(one.clear for one in found.columns)),
            ("who is tested", any(one.clear for one in found.about("tested"))),
            ("how common the outcome is", any(one.clear for one in found.about("prevalence"))),
        )
        if is_so
    ]
    yield f"Changed since the fit: {', '.join(changed) or 'nothing clearly'}."


def _of_everybody(found: Monitoring, about: str) -> Change:
    return next(one for one in found.about(about) if one.of == EVERYBODY)


def _key_numbers(found: Monitoring) -> Iterator[doc.KeyNumber]:
    auc = _of_everybody(found, "auc")
    was = f"; {auc.then:score} then" if auc.then.estimable else ""
    yield doc.KeyNumber(doc.estimate(auc.now), f"AUC now{was}")
    if found.about("calibration"):
        what = "mean predicted risk minus what is found now"
        yield doc.KeyNumber(doc.estimate(_of_everybody(found, "calibration").now, "points"), what)
    if found.about("tested"):
        what = "share tested minus what it would have been then, at equal features"
        yield doc.KeyNumber(doc.estimate(_of_everybody(found, "tested").difference, "points"), what)


def _picture(found: Monitoring) -> doc.Dots:
    """AUC now against then, everybody and each group."""
    known = found.about("auc")
    if len(known) > MOST_GROUPS + 1:  # everybody, then those of whom something is told
        known = tuple(sorted(known, key=lambda one: not one.now.estimable)[: MOST_GROUPS + 1])
    left = len(found.about("auc")) - len(known)
    more = f" {counted(left, 'more group')}: see “Does the model hold?”." if left else ""
    rows = tuple(
        doc.DotRow(
            doc.whose(one.of), (doc.estimate(one.now),), (doc.estimate(one.then),), marked=one.clear
        )
        for one in known
    )
    judged = any(one.then.estimable for one in found.about("auc"))
    then = " Hollow: when the model was fitted, on people it had not seen."
    return doc.Dots(
        "AUC now, and then" if judged else "AUC now",
        ("AUC",),
        rows,
        f"Now: {found.target}.{then * judged}{more}",
        reference="when it was fitted",
        marked="clearly changed",
    )


def _comes(found: Monitoring) -> Iterator[doc.Block]:
    rows = [
        {
            "column": one.column if one.column == UNLIKE else doc.Name(one.column),
            "stability index": doc.estimate(one.index, "score"),
            "p-value": doc.chance(one.p_value),
            "changed most": doc.Name(one.bin),
            "then": one.said[0] or doc.share(one.then),
            "now": one.said[1] or doc.share(one.now),
            "clear?": "yes" if one.clear else "no",
        }
        for one in found.columns
    ]
    note = (
        "Population stability index over bins of each column: under .1 is little, over .25 much. "
        "P-values of no change, corrected for the number of columns; each person counts once. "
        "Shares that would reveal a count below ten are withheld; so are p-values of columns with "
        f"so small a bin, and their index is computed from counts in tens. {CLEAR}"
    )
    clear = sum(one.clear for one in found.columns)  # which come first
    shown = min(max(clear, LEAST), MOST)
    yield doc.listing("", rows[:shown], note=note)
    if rows[shown:]:
        left = len(rows) - shown
        caption = f"{left} more column{'s' * (left > 1)}"
        yield doc.Fold(caption, (doc.listing("", rows[shown:]),))


def _changes(
    found: Monitoring, about: str, form: str, difference: str, note: str, caption: str = ""
) -> doc.Block:
    rows = [
        (
            doc.whose(one.of),
            doc.estimate(one.then, form),
            doc.estimate(one.now, form),
            doc.estimate(one.difference, difference),
            "yes" if one.clear else "no",
        )
        for one in found.about(about)
    ]
    return doc.table(caption, ("group", "then", "now", "change", "clear?"), rows, note=note)


def _testing_section(found: Monitoring) -> Iterator[doc.Block]:
    note = (
        "Then: the share of the people now whom the earlier decisions would have tested (logistic "
        "regression on features and group). The interval of the change covers both samples. "
        f"{CLEAR}"
    )
    yield _changes(found, "tested", "percent", "points", note)


def _prevalence_section(found: Monitoring) -> Iterator[doc.Block]:
    note = "Share with the outcome, doubly robust, if features and group explain who is tested."
    yield _changes(found, "prevalence", "percent", "points", note)
    rows = [
        (doc.Name(name), doc.estimate(then, "percent"), doc.estimate(now, "percent"))
        for name, (then, now) in found.positive.items()
    ]
    yield doc.Fold("Positive of tested", (doc.table("", ("group", "then", "now"), rows),))


def _performance_section(found: Monitoring) -> Iterator[doc.Block]:
    changes = partial(_changes, found)
    yield changes("auc", "score", "gain", "", f"AUC, {found.target}")
    if found.about("calibration"):
        caption = "Mean predicted risk minus share of positives"
        yield changes("calibration", "points", "points", "", caption)
        rows = [(doc.Name(of), doc.estimate(by, "points")) for of, by in found.by_attribute.items()]
        if rows:
            yield doc.table(f"{caption}, each attribute by itself", ("group", "now"), rows)
        caption = "Calibration slope: 1 is right, below it risks are too extreme"
        note = "Then, that of everybody was 1 by construction: a fit calibrates its risks."
        yield changes("slope", "ratio", "ratio", note, caption)
