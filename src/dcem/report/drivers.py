"""Which columns drive who is tested, and which drive a score or an outcome, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dcem.compare.findings import about_drivers
from dcem.estimation.effects import MOST
from dcem.estimation.results import Effect
from dcem.report import document as doc

CURVES = 6  # columns whose effects are shown
SHARES = (
    "Each column's share of the permutation importances: how far predictions move when the values "
    "of the column are permuted. Columns with the same information share their importance, and "
    "prediction is not causation."
)
EFFECTS = (
    "Accumulated local effects: by how many percentage points a value of the column puts people "
    "above or below the average, other columns being as they are for people like them. Each value "
    "is based on at least ten people."
)


def shares_side_by_side(
    testing: Mapping[str, float], other: Mapping[str, float], what: str, caption: str
) -> doc.Dots:
    """Each column's share in what drives testing, beside that in something else."""
    largest = {name: max(testing.get(name, 0.0), share) for name, share in other.items()}
    most = sorted(largest, key=lambda name: -largest[name])[:MOST]
    return doc.Dots(
        f"What drives testing, and what drives {what}",
        ("who is tested", what),
        tuple(
            doc.DotRow(
                doc.Name(name),
                (doc.estimate(testing.get(name), "percent"), doc.estimate(other[name], "percent")),
            )
            for name in most
        ),
        caption,
        one_axis=True,
    )


def driver_blocks(
    testing: Sequence[Effect],
    score: Sequence[Effect],
    whose: str,
    others: Mapping[str, Sequence[Effect]] | None = None,
) -> Iterator[doc.Block]:
    """What a score relies on and what testing does; of `others`, their shares in a table."""
    if not score or all(one.share != one.share for one in score):
        return
    shares = {one.column: one.share for one in testing}
    own = {one.column: one.share for one in score}
    said = [finding.headline for finding in about_drivers(whose, testing, score)]
    if said:
        said += ["Such a column may send people to a test for reasons other than risk."]
        yield doc.Text((" ".join(said),))
    inside: list[doc.Block] = [shares_side_by_side(shares, own, "the score", SHARES)]
    if others:
        inside.append(_of_every_method(own, others))
    views = tuple(_effects(testing, score))
    if views:
        inside += [doc.Text((EFFECTS,)), doc.Views("effects", "Effect of a column", views)]
    yield doc.Fold("Columns by permutation importance, and what each does", tuple(inside))


def _of_every_method(own: Mapping[str, float], others: Mapping[str, Sequence[Effect]]) -> doc.Block:
    by_method = {name: {one.column: one.share for one in found} for name, found in others.items()}
    return doc.table(
        "What the score of every method relies on",
        ("column", *(f"`{name}`" for name in by_method)),
        [
            (
                doc.Name(column),
                *(doc.estimate(of.get(column), "percent") for of in by_method.values()),
            )
            for column in own
        ],
    )


def _effects(testing: Sequence[Effect], score: Sequence[Effect]) -> Iterator[doc.View]:
    """One view per column: testing and score along its values."""
    on_testing = {one.column: one for one in testing}
    shares = {one.column: one.share for one in testing}
    ordered = sorted(score, key=lambda one: -max(one.share, shares.get(one.column, 0.0)))
    for effect in [one for one in ordered if len(one.at)][:CURVES]:
        other = on_testing.get(effect.column)
        known = dict(zip(other.at, other.value, strict=True)) if other is not None else {}
        rows = tuple(
            doc.DotRow(
                doc.Name(at), (doc.estimate(known.get(at), "points"), doc.estimate(on, "points"))
            )
            for at, on in zip(effect.at, effect.value, strict=True)
        )
        title = f"Along `{effect.column}`: the chance of a test, and the score"
        dots = doc.Dots(title, ("who is tested", "the score"), rows, "", one_axis=True)
        yield doc.View(effect.column, (dots,))
