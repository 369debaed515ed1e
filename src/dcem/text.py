"""Numbers as people write them: the one place where a value becomes text.

Scores have no leading zero (.787), shares are in per cent (16.2 %), differences of shares in
percentage points with their sign (-3.1). What rounds to zero is zero: no number is written as
-.000. NaN is a dash. Nothing here knows what a number is about; sentences and writers do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf, isnan

MISSING = "–"
# What a terminal obeys instead of showing it: controls, marks that turn the direction of writing,
# other ends of lines, and bytes of a file name that are no text.
COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """A text of any origin as it may be printed.

    >>> printable("age\\x1b[2J, sex")
    'age�[2J, sex'
    """
    return COMMANDS.sub("�", text)


def decimal(value: float, digits: int = 2, sign: bool = False) -> str:
    """`1.21`, `-0.30`, `1,204.00`; never a minus before zero."""
    if isnan(value):
        return MISSING
    if value in (inf, -inf):
        return "∞" if value > 0 else "-∞"
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    # Nothing but zeros: neither less nor more than nothing.
    return text.lstrip("+-") if not text.strip("+-0.,") else text


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A score or rate without its leading zero: .787, -.012, 1.000."""
    text = decimal(value, digits, sign)
    bare = text.lstrip("+-")
    return text[: len(text) - len(bare)] + bare.removeprefix("0") if bare[:2] == "0." else text


def percent(share: float, digits: int | None = None) -> str:
    """A share in per cent: with one decimal as in tables, or to `digits`.

    A share that is a whole number of per cent, such as one that somebody chose, has no decimal.

    >>> percent(0.05), percent(0.1604), percent(0.0001)
    ('5 %', '16.0 %', '<0.1 %')
    """
    if isnan(share):
        return MISSING
    if digits is not None:
        return f"{decimal(100 * share, digits)} %"
    if 0 < share < 0.0005:
        return "<0.1 %"  # little, but not nothing
    if 0.9995 < share < 1 - 1e-11:
        return ">99.9 %"  # nearly, but not all
    whole = abs(100 * share - round(100 * share)) < 1e-9
    return f"{decimal(100 * share, 0 if whole else 1)} %"


def of_100(share: float, low: float, high: float) -> tuple[str, str]:
    """`80` and `77 to 83`: a share as so many of 100, its interval rounded outwards.

    The ends are those that three decimals show, so that a number has one rounding on a page.
    """
    ends = [f(round(100 * v, 1)) if v == v else v for f, v in ((floor, low), (ceil, high))]
    return decimal(100 * share, 0), " to ".join(decimal(end, 0) for end in ends)


def points(difference: float, digits: int = 1) -> str:
    """A difference of shares in percentage points, with its sign: -3.1."""
    return decimal(100 * difference, digits, sign=True)


def ratio(value: float) -> str:
    """A ratio: 1.21; a large one without decimals, since nobody reads them."""
    return decimal(value, 2 if abs(value) < 100 else 0)


def count(value: float) -> str:
    """A count with thousands separated."""
    return decimal(value, 0)


def counted(number: int, noun: str) -> str:
    """How many of something: `1 row`, `2,000 people`."""
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def p_value(p: float) -> str:
    """`p = .031`, `p < .001`."""
    return f"p {MISSING}" if isnan(p) else "p < .001" if p < 0.001 else f"p = {number(p)}"


def duration(seconds: float) -> str:
    """`under a second`, `12 seconds`, `3 minutes`, `2.5 hours`."""
    if seconds < 0.95:
        return "under a second"
    if seconds < 99.5:
        return f"{seconds:.0f} second{'s' * (round(seconds) != 1)}"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def time_span(least: float, most: float) -> str:
    """`3 to 12 minutes`, `40 seconds to 3 minutes`; once, where both are the same."""
    low, high = duration(least), duration(most)
    if low == high:
        return low
    same_unit = low.split()[-1].rstrip("s") == high.split()[-1].rstrip("s")
    return f"{low.split()[0] if same_unit and low[0].isdigit() else low} to {high}"


def fraction(value: float) -> str:
    """A parameter as papers write it: 1/3, 1/2, 3/2, 2; what is not so simple as a decimal."""
    exact = Fraction(value).limit_denominator(4)
    return str(exact) if abs(exact - value) < 1e-3 else f"{value:.3g}"


def remaining(seconds: float | None) -> str:
    """`, about 2 minutes left`, to be put behind what is being done.

    Nothing if nobody knows, or if it should be done by now: work that takes longer than expected
    would be about to end for minutes.
    """
    return "" if seconds is None or seconds < 0.95 else f", about {duration(seconds)} left"


# Form of a number -> how it is written, and how the ends of its interval are.
FORMS: dict[str, tuple[Callable[[float], str], Callable[[float], str]]] = {
    "score": (number, number),
    "error": (number, number),
    "gain": (partial(number, sign=True), partial(number, sign=True)),
    "fine score": (partial(number, digits=4), partial(number, digits=4)),
    "percent": (partial(percent, digits=1), lambda share: decimal(100 * share, 1)),
    "points": (lambda difference: f"{points(difference)} points", points),
    "ratio": (ratio, ratio),
    "count": (count, count),
    "seconds": (partial(decimal, digits=1), partial(decimal, digits=1)),
}


def value(number: float, form: str = "score") -> str:
    """A number in its form."""
    return FORMS[form][0](number)


def estimated(number: float, low: float, high: float, form: str = "score") -> tuple[str, str]:
    """A number with its interval, in their form: `.787` and `[.768, .823]`.

    An "error" is what is left of a distance once the part that chance alone shows is taken away.
    Where nothing is left it is not known to be 0, only how large it may be: `at most .067`.
    """
    if form == "error" and number < 0.0005 <= high:
        return f"at most {value(high)}", ""
    return value(number, form), interval(low, high, form)


def interval(low: float, high: float, form: str = "score") -> str:
    """`[.768, .823]`; nothing without an interval."""
    if isnan(low) or isnan(high):
        return ""
    write = FORMS[form][1]
    return f"[{write(low)}, {write(high)}]"


def group(name: str) -> str:
    """A group inside a sentence: one that is called 1 or b needs the word."""
    bare = "".join(sign for sign in name if not unicodedata.category(sign).startswith("M"))
    return name if re.search(r"[^\W\d_]{2}", bare) else f"group {name}"  # हिन्दी does not


def groups(names: Sequence[str]) -> str:
    """Groups inside a sentence: `north and south`; all with the word if one of them needs it."""
    each = all(group(name) == name for name in names)
    return listed([name if each else f"group {name}" for name in names])


def named_groups(names: Sequence[str]) -> str:
    """Groups behind a preposition: `group White`, `groups north and south`.

    `in White` and `in 1` are not English, and which names are places nobody can tell.
    """
    return f"group{'s' * (len(names) > 1)} {listed(names)}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """A, B and C; of many, the first are named and the others counted; of none, `none`."""
    if not names:
        return "none"
    shown = (
        [*names] if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]
    )
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def in_short(entries: Sequence[str], most: int = 40, joint: str = ", ") -> str:
    """All entries one behind the other; of many, the first, and how many more there are.

    >>> in_short(["a", "b", "c", "d"], most=3)
    'a, b and 2 more'
    """
    if len(entries) <= most:
        return joint.join(entries)
    return f"{joint.join(entries[: most - 1])} and {len(entries) - most + 1:,} more"


def capitalised(text: str, names: Collection[str] = ()) -> str:
    """A clause as the beginning of a sentence; a name that begins it keeps its letters."""
    if any(re.match(rf"{re.escape(name)}(?!\w)", text) for name in names if name):
        return text
    return text[:1].upper() + text[1:]
