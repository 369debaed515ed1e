"""Small counts hidden, together with the counts that would give them away.

A page that is shared must not let a reader learn that, say, three patients had some trait. Hiding
the three is not enough: if 40 patients were left before a step and 37 after it, everybody can
subtract. So the counts are taken together with every sum that holds among them, and shown one by
one, the most important first: each, unless a small count would follow from it and those before it.

A zero is shown as small like any other, but nothing else is hidden for its sake: a reader who
works out that it was zero has learnt of nobody. The exception is a zero that tells what everybody
in a small group has: 12 tested, of whom none is negative, are 12 positive people. Out of fewer than
`ENOUGH` people nobody and everybody are as secret as a few, unless it is so in the whole table. Of
larger groups they are told. This protects against subtraction. It does not
protect against a reader who knows some patients already, nor against comparing two pages built
from different inputs.

`hide_groups` is the rule for a table of people in groups. Audit, comparison and model card all use
it, totals included: pages that each hid something else would together hide nothing. Totals stay if
they can; a rate may be shown where both of its counts are. Taking every sum together costs the cube
of the number of groups. From `MANY_GROUPS` on the rule is simpler and hides more: a group with a
small count shows nothing, and neither do so many others, the smallest first, that all these groups
together are a crowd in which nobody stands out. All that a reader can subtract is that crowd.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels

THRESHOLD = 10  # people: fewer are neither counted in public nor learnt from alone
MANY_GROUPS = 50  # more of them are hidden by a simpler rule
ENOUGH = 30  # people: what all of fewer have in common is not shown
SMALL = f"<{THRESHOLD}"  # shown in place of a count under the threshold
WITHHELD = "withheld"  # shown in place of a count that would reveal a small one

_ENDLESS = 1e12  # more than any count; infinity would make nonsense of differences
_NOTHING = 1e-9  # what is left of a zero by rounding is less

Sum = tuple[str, tuple[str, ...]]  # the name of a total, and the names of its parts
Shown = int | str

# What is left of a count once a part of it is taken away: whoever sees both can subtract.
RESTS = {
    "untested": ("rows", "tested"),
    "negative": ("tested", "positive"),
    "unseen": ("positive in truth", "positive"),
    "negative in truth": ("rows", "positive in truth"),
}


def hide_groups(
    groups: Sequence[Mapping[str, int]], few: Sequence[Collection[str]] | None = None
) -> list[dict[str, Shown]]:
    """Counts of every group and, last, of all together, as everybody may see them.

    Parameters
    ----------
    groups
        Of each group its `rows`, those `tested` and `positive` among them, and `positive in truth`
        where that is known.
    few
        What `few_people` found; None: every row is a person.
    """
    together = {key: sum(group[key] for group in groups) for key in groups[0]}
    if few is None:
        whole_table = _with_rests(together)
        few = [_all_alike(_with_rests(one), whole_table) for one in (*groups, together)]
    if len(groups) > MANY_GROUPS:
        return _hide_many([*groups, together], few)
    counts: dict[str, int] = {}
    sums: list[Sum] = []
    rests = [rest for rest, parts in RESTS.items() if set(parts) <= together.keys()]
    for place, group in enumerate((together, *groups)):
        counts |= {f"{place}:{key}": value for key, value in _with_rests(group).items()}
        for rest in rests:
            whole, part = RESTS[rest]
            sums.append((f"{place}:{whole}", (f"{place}:{part}", f"{place}:{rest}")))
    places = range(1, len(groups) + 1)
    sums += [
        (f"0:{key}", tuple(f"{place}:{key}" for place in places)) for key in (*together, *rests)
    ]
    behind = [few[-1], *few[:-1]]
    shown = hide_small(
        counts,
        sums,
        unseen=[name for name in counts if name.partition(":")[2] in rests],
        few={f"{place}:{key}" for place, keys in enumerate(behind) for key in keys},
        important=[f"0:{key}" for key in together],
    )
    return [{key: shown[f"{place}:{key}"] for key in together} for place in (*places, 0)]


def _hide_many(
    groups: Sequence[Mapping[str, int]], few: Sequence[Collection[str]]
) -> list[dict[str, Shown]]:
    """`hide_groups` of many groups and, last, of all together.

    A group is shown as a whole or not at all. Those that are not make a crowd, whose sums follow
    from the totals: it has at least two groups, `ENOUGH` rows more than groups, and `ENOUGH` of
    whatever else there is in the table. Which of its groups are small is not said.
    """
    *parts, together = map(_with_rests, groups)
    small = [
        bool(secret) or any(0 < count < THRESHOLD for count in one.values())
        for one, secret in zip(parts, few, strict=False)
    ]
    # from the smallest; those with a small count before all others
    whole = next(iter(together))
    order = sorted(range(len(parts)), key=lambda i: (not small[i], parts[i][whole], i))
    sums, size = dict.fromkeys(together, 0), 0
    for i in order:
        least = {"rows": size + ENOUGH}
        full = size > 1 and all(
            count >= least.get(key, ENOUGH) or not together[key] for key, count in sums.items()
        )
        if not small[i] and (full or not size):
            break
        sums, size = {key: count + parts[i][key] for key, count in sums.items()}, size + 1
    hidden = set(order[:size])
    found: list[dict[str, Shown]] = [
        dict.fromkeys(one, WITHHELD)
        if i in hidden
        else {key: SMALL if count < THRESHOLD else count for key, count in one.items()}
        for i, one in enumerate(groups[:-1])
    ]
    return [*found, hide_groups(groups[-1:], [few[-1]] * 2)[-1]]


def _with_rests(group: Mapping[str, int]) -> dict[str, int]:
    rests = {
        rest: group[whole] - group[part]
        for rest, (whole, part) in RESTS.items()
        if whole in group and part in group
    }
    return {**group, **rests}


def _all_alike(people: Mapping[str, int], everybody: Mapping[str, int]) -> frozenset[str]:
    """Empty counts that tell what everybody in a small whole has, though not all in the table do.

    Both are numbers of people by cell, of a group and of all together.
    """
    return frozenset(
        cell
        for rest, (whole, part) in RESTS.items()
        if rest in people and 0 < people[whole] < ENOUGH
        for cell in (part, rest)
        if people[cell] == 0 and (everybody[cell] > 0 or everybody[whole] < ENOUGH)
    )


def people_of(cluster: np.ndarray, person: np.ndarray, n_clusters: int) -> np.ndarray:
    """Different people in each cluster `[n_clusters]`, from a cluster and a person per row."""
    width = int(person.max()) + 1 if len(person) else 1
    pairs = np.unique(cluster.astype(np.int64) * width + person)
    return np.bincount(pairs // width, minlength=n_clusters)


def enough_people(person: np.ndarray, rows: np.ndarray, most: int) -> bool:
    """Whether ten people or more have these rows, of which a person has `most` at most.

    Of many rows it need not be counted.
    """
    n = int(np.count_nonzero(rows))
    return n >= most * THRESHOLD or (n >= THRESHOLD and len(np.unique(person[rows])) >= THRESHOLD)


def few_people(problem: SelectiveLabels, truth: np.ndarray | None = None) -> list[frozenset[str]]:
    """Of each group, and last of all together: the counts behind which 1 to 9 people stand.

    Ten visits of one person are ten rows, and one person to protect. Among them are the empty
    counts that tell what everybody in a small group has.
    """
    cells = {
        "rows": np.ones(len(problem), bool),
        "tested": problem.tested,
        "untested": ~problem.tested,
        "positive": problem.y_obs == 1,
        "negative": problem.y_obs == 0,
    }
    if problem.positives_only:
        del cells["negative"]  # of nobody it is known
    if truth is not None:
        cells |= {"positive in truth": truth == 1, "negative in truth": truth == 0}
        cells["unseen"] = (truth == 1) & ~cells["positive"]
    return few_among(cells, problem.group, problem.n_groups, problem.person)


def few_among(
    cells: Mapping[str, np.ndarray], group: np.ndarray, n_groups: int, person: np.ndarray
) -> list[frozenset[str]]:
    """`few_people` of rows that are not a problem: `cells` are masks [n], `person` numbers [n]."""
    everybody = {key: len(np.unique(person[cell])) for key, cell in cells.items()}
    each = {key: people_of(group[cell], person[cell], n_groups) for key, cell in cells.items()}
    people = [
        *({key: int(each[key][code]) for key in cells} for code in range(n_groups)),
        everybody,
    ]
    return [
        frozenset(key for key, count in one.items() if 0 < count < THRESHOLD)
        | _all_alike(one, people[-1])
        for one in people
    ]


def tellable_shares(
    problem: SelectiveLabels, yes: np.ndarray, among: np.ndarray | None = None
) -> dict[str, bool]:
    """Of everybody and each group, whether the share of `yes` may be told `among` these rows.

    Both are masks [n]. Whoever knows a share and of how many it is knows how many they are; and
    what all groups but one have, and all together, tells what the last one has.
    """
    among = np.ones(len(problem), bool) if among is None else among
    # a whole and its part, by the names that `hide_groups` knows such by
    cells = {"tested": among, "positive": among & yes, "negative": among & ~yes}
    few = few_among(cells, problem.group, problem.n_groups, problem.person)
    exact = [
        {key: int((cells[key] & (problem.group == code)).sum()) for key in RESTS["negative"]}
        for code in range(problem.n_groups)
    ]
    counts = [*exact, {key: sum(one[key] for one in exact) for key in exact[0]}]
    told = [  # that it is nobody, too, unless it tells of all of a small group
        not secret and not any(isinstance(one[key], str) and n[key] for key in n)
        for one, n, secret in zip(hide_groups(exact, few), counts, few, strict=True)
    ]
    everybody = next(iter(problem.parts()))
    return dict(zip((*problem.group_names, everybody), told, strict=True))


def in_tens(counts: np.ndarray) -> np.ndarray:
    """Counts [bins] to the nearest ten, those under ten as 0.

    Exact ones add up to all but the hidden, and so tell how many these are.
    """
    return np.where(counts < THRESHOLD, 0, np.round(counts / THRESHOLD) * THRESHOLD)


def hide_small(
    counts: Mapping[str, int],
    sums: Sequence[Sum],
    *,
    unseen: Collection[str] = (),
    few: Collection[str] = (),
    important: Sequence[str] = (),
    show_all: bool = False,
) -> dict[str, Shown]:
    """Every count, or in its place `SMALL` or `WITHHELD`.

    `sums` lists what a reader knows to add up. `unseen` names counts that are on no page, but that
    a reader could form: they must not give a small one away, and hiding them costs nothing. `few`
    names counts of rows behind which fewer than ten people stand, and zeros that tell what all of a
    small group have: as secret as small ones.
    `important` names counts to be withheld last, the most important first; of the others the
    smallest is withheld first, and of equals the last.
    """
    if show_all:
        return dict(counts)
    names = list(counts)
    place = {name: column for column, name in enumerate(names)}
    relations = np.zeros((len(sums), len(names)))  # [sums, counts], each row: total - parts = 0
    for row, (total, parts) in enumerate(sums):
        relations[row, place[total]] = 1.0
        for part in parts:
            relations[row, place[part]] = -1.0
    value = np.array([counts[name] for name in names], dtype=float)
    few_behind, off_page = np.isin(names, list(few)), np.isin(names, list(unseen))
    small = value < THRESHOLD
    page = _Page(
        relations,
        value,
        hidden=np.ones(len(names), bool),
        unseen=off_page,
        secret=few_behind | (small & (value > 0)),
        free=_free(np.eye(len(names)), relations),
    )
    anyway = page.known_secrets()  # whatever is hidden
    rank = {name: i for i, name in enumerate(important)}
    may_be_shown = np.flatnonzero(~(small | few_behind | off_page)).tolist()
    may_be_shown.sort(key=lambda i: (rank.get(names[i], len(rank)), -value[i], i))

    def show(some: list[int]) -> None:
        """As many as can be, each before those after it: all at once, or half by half."""
        before, page.hidden[some] = page.free, False
        page.free = _free(page.free, np.eye(len(names))[some])
        if (page.known_secrets() & ~anyway).any():
            page.free, page.hidden[some] = before, True
            if len(some) > 1:
                show(some[: len(some) // 2])
                show(some[len(some) // 2 :])

    show(may_be_shown)
    return {
        name: (SMALL if small[i] else WITHHELD) if page.hidden[i] else counts[name]
        for i, name in enumerate(names)
    }


@dataclass
class _Page:
    """What a reader sees, and what follows from it."""

    relations: np.ndarray  # [sums, counts], each row: total - parts = 0
    value: np.ndarray  # [counts]
    hidden: np.ndarray  # [counts]
    unseen: np.ndarray  # [counts], on no page: not even known to be small
    secret: np.ndarray  # [counts], of fewer than ten people, or of nobody in a small group
    free: np.ndarray  # [counts, directions] in which what a reader does not know can move

    def known_secrets(self) -> np.ndarray:
        """The secret counts [counts] that follow from the page.

        Three ways to learn of a small count: to solve the sums for it; to find that it is under the
        threshold from the sums alone, since it is part of something that is (a group of 2, whatever
        it is made of); and to find its only possible value by the marks, too: two of "<10" that
        add up to 18 are nines.
        """
        if not self.secret.any():
            return self.secret
        small = self.value < THRESHOLD
        least = np.where(small | self.unseen, 0, THRESHOLD)
        most = np.where(small & ~self.unseen, THRESHOLD - 1, _ENDLESS)
        low, high = self._bounds(least, most)
        known = low == high
        nothing, anything = np.zeros(len(small)), np.full(len(small), _ENDLESS)
        known |= self._bounds(nothing, anything)[1] < THRESHOLD
        known |= self.hidden & (np.abs(self.free) < _NOTHING).all(axis=1)  # solved
        return known & self.secret

    def _bounds(self, least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What every count must at least and can at most be, by the sums it is in.

        Every sum narrows the bounds of its members, again and again until nothing changes.
        """
        of, part = np.nonzero(self.relations < 0)  # of each part of a sum: which sum, which count
        whole, total = np.nonzero(self.relations > 0)

        def summed(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # parts, totals: [sums]
            n_sums = len(self.relations)
            return np.bincount(of, value[part], n_sums), np.bincount(whole, value[total], n_sums)

        low = np.where(self.hidden, least, self.value)
        high = np.where(self.hidden, most, self.value)
        while True:
            before = low.copy(), high.copy()
            (parts_low, total_low), (parts_high, total_high) = summed(low), summed(high)
            rest_low, rest_high = parts_low[of] - low[part], parts_high[of] - high[part]
            np.maximum.at(low, total, parts_low[whole])
            np.maximum.at(low, part, total_low[of] - rest_high)
            np.minimum.at(high, total, parts_high[whole])
            np.minimum.at(high, part, total_high[of] - rest_low)
            if (low == before[0]).all() and (high == before[1]).all():
                return low, high


def _free(free: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The directions [counts, fewer] left of `free` once these sums [k, counts] are known.

    Gaussian elimination: each sum that can still move takes away one direction. A count that moves
    in none of those left is determined.
    """
    for one in known:
        moved = one @ free
        pivot = int(np.abs(moved).argmax()) if len(moved) else 0
        if len(moved) and abs(moved[pivot]) > _NOTHING:
            free = free - np.outer(free[:, pivot] / moved[pivot], moved)
            free = np.delete(free, pivot, axis=1)
    return free
