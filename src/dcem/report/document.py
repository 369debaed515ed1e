"""A report before it is written: blocks whose cells are values.

A document opens with the answer (`Opening`: verdict, three numbers, one picture, what it does not
show), goes on with findings, the worst first, and then with sections of tables, figures and text,
most of them folded. Every number in it is still a number: an `Estimate` with the form it will have
(`Number`), a count, a reason why there is none. Four writers make text of it (`to_html`,
`to_markdown`, `to_terminal`, `to_json`), all with `pieces_of`, so that they hold the same numbers.

Prose is a plain `str`; names of methods and columns in it stand in backticks. What a user named
(groups, columns) is a `Name` where it stands alone: no writer takes it for markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import isnan
from typing import Any, NamedTuple

from dcem import text
from dcem.estimation.findings import KEY, Finding
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate


# ------------------------------------------------------------------------------------- cells
@dataclass(frozen=True)
class Number:
    """A number with its interval, in one of the forms of `dcem.text.FORMS`."""

    estimate: Estimate
    form: str = field(default="score", metadata=KEY)
    beside: str = ""  # a word or two under it: "by chance", "of 1,200"


@dataclass(frozen=True)
class Count:
    """A count, with its share of a whole where one is given."""

    value: int
    of: int | None = None


@dataclass(frozen=True)
class Missing:
    """No number, and why: not estimable, withheld, or simply none."""

    reason: str = ""
    what: str = "not estimable"


@dataclass(frozen=True)
class Name:
    """What a user called something: shown as it is."""

    name: str = field(metadata=KEY)


@dataclass(frozen=True)
class Code:
    """A name of this library: a method, a parameter."""

    name: str = field(metadata=KEY)
    tag: str = ""  # what sets it apart: "recommended", "given the truth"
    about: str = ""  # what it is, in a few words


Cell = Number | Count | Missing | Name | Code | str
NOTHING = Missing(what="–")
WITHHELD = Missing(what="withheld")


def estimate(found: Estimate | float | None, form: str = "score", beside: str = "") -> Cell:
    """The cell of an estimate: its number, or why there is none."""
    if found is None:
        return NOTHING
    if not isinstance(found, Estimate):
        found = Estimate(float(found))
    if isnan(found.value):
        withheld = found.reason.startswith("withheld")
        return WITHHELD if withheld else Missing(found.reason) if found.reason else NOTHING
    return Number(found, form, beside)


def count_cell(value: int | str | None, of: int | str | None = None) -> Cell:
    """The cell of a count, or what stands in its place: "<10", "withheld", nothing."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return Missing(what=value)
    return Count(value, of if isinstance(of, int) else None)


def share(value: float, form: str = "percent") -> Cell:
    """The cell of a number that is NaN where it would give a small count away."""
    return WITHHELD if isnan(value) else estimate(value, form)


def chance(p: float) -> Cell:
    """The cell of a p-value."""
    return NOTHING if isnan(p) else text.p_value(p)


def briefly(found: Estimate | None, form: str = "score") -> Cell:
    """The cell of an estimate without the reason why there is none, for lack of room."""
    return Number(found, form) if found and found.estimable else Missing()


def whose(name: str, reach: float = 1.0) -> Cell:
    """The cell that says whose numbers stand beside it: a group's, or everybody's.

    A group that is called 1 is "group 1": a picture, or a table on a phone, has no heading for it.
    `reach`: the share of people within reach of the tests, if the numbers are about them alone.
    """
    everybody = "everybody" if reach == 1 else "all within reach"
    return everybody if name == EVERYBODY else Name(text.group(name))


class Pieces(NamedTuple):
    """A cell in pieces, for a writer to set in type."""

    main: str
    quiet: str = ""  # its interval or share: smaller, beside it
    beside: str = ""  # a remark under it
    absent: bool = False  # whether this says why a number is missing


def pieces_of(cell: Cell) -> Pieces:
    """A cell as text, in pieces: the same in every output."""
    if isinstance(cell, str):
        return Pieces(cell)
    if isinstance(cell, Number):
        found = cell.estimate
        return Pieces(*text.estimated(found.value, found.low, found.high, cell.form), cell.beside)
    if isinstance(cell, Count):
        part = f"({text.percent(cell.value / cell.of)})" if cell.of else ""
        return Pieces(text.count(cell.value), part)
    if isinstance(cell, Missing):
        return Pieces(f"{cell.what}: {cell.reason}" if cell.reason else cell.what, absent=True)
    return Pieces(cell.name, cell.tag if isinstance(cell, Code) else "")


def on_one_line(cell: Cell) -> str:
    """A cell on one line: `.787 [.768, .823]`."""
    shown = pieces_of(cell)
    line = " ".join(piece for piece in (shown.main, shown.quiet) if piece)
    return f"{line}; {shown.beside}" if shown.beside else line


def in_sentence(found: Estimate | float, form: str = "score") -> str:
    """An estimate inside a sentence: `.787 [.768, .823]`, or why there is none."""
    return on_one_line(estimate(found, form))


# ------------------------------------------------------------------------------------ blocks
@dataclass(frozen=True)
class Verdict:
    """The answer that a committee can repeat, and how sure it is."""

    severity: str = field(metadata=KEY)
    answer: str  # a few words: "North is tested less"
    sentences: tuple[str, ...]
    certainty: str
    worst: Finding | None = None  # more serious than the answer, which it stands above

    @property
    def most_severe(self) -> str:
        """How serious the first line is, and so the first screen."""
        return self.severity if self.worst is None else self.worst.severity


@dataclass(frozen=True)
class KeyNumber:
    """One of the three numbers of the first screen."""

    cell: Cell
    label: str


@dataclass(frozen=True)
class DotRow:
    """One row of `Dots`: in each column a number, and what it is to be compared with."""

    label: Cell
    values: tuple[Cell, ...]
    references: tuple[Cell, ...] = ()
    colour: str = field(default="ink", metadata=KEY)  # of the palette of `style`
    marked: bool = False


@dataclass(frozen=True)
class Dots:
    """A picture that is a table: a point with its interval in each row, on common axes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[DotRow, ...]
    caption: str
    reference: str = ""  # what the hollow mark beside each point is
    one_axis: bool = False  # whether the columns show one thing, on the same stretch of numbers
    marked: str = ""  # what the marked rows are

    @property
    def compared(self) -> list[int]:
        """The places of the columns that have something to be compared with."""
        beside = [row.references for row in self.rows if row.references]
        columns = enumerate(zip(*beside, strict=True))
        return [i for i, cells in columns if any(isinstance(cell, Number) for cell in cells)]


@dataclass(frozen=True)
class Figure:
    """A drawing, made only when somebody looks: most writers never do."""

    draw: Callable[[], Any] = field(metadata=KEY)  # -> style.Drawing, or None
    say: Callable[[str], str] = field(default=str, metadata=KEY)


@dataclass(frozen=True)
class Findings:
    """Findings, the worst first."""

    items: tuple[Finding, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first of a row names it. `words` are the columns that hold sentences.

    `start`: the rows are steps along something (a strength, a threshold), and a page lets its
    reader move through them one by one, from this row on.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    words: tuple[int, ...] = ()
    start: int | None = None


@dataclass(frozen=True)
class Text:
    """Paragraphs, or a list of points."""

    paragraphs: tuple[str, ...]
    bullets: bool = False


@dataclass(frozen=True)
class Terms:
    """What each of some names does: methods, assumptions."""

    items: tuple[tuple[Cell, str], ...]


@dataclass(frozen=True)
class Fold:
    """Detail for those who want it: folded on a screen, open on paper, not in a terminal."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class View:
    """One of several views of the same thing."""

    label: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Views:
    """Several views, one at a time on a screen, all on paper."""

    key: str = field(metadata=KEY)
    legend: str
    views: tuple[View, ...]


@dataclass(frozen=True)
class Facts:
    """Facts by name: the file, its hash, settings, versions. Never reworded."""

    items: Mapping[str, str] = field(metadata=KEY)


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it."""

    key: str = field(metadata=KEY)
    title: str
    blocks: tuple[Block, ...]


Block = Dots | Figure | Findings | Table | Text | Terms | Fold | Views | Facts | Section


@dataclass(frozen=True)
class Opening:
    """The first screen: the answer, three numbers, one picture, and what they do not show."""

    verdict: Verdict
    numbers: tuple[KeyNumber, ...]
    picture: Dots | Figure | None
    limits: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """Everything a report says, in its order."""

    title: str = field(metadata=KEY)
    lead: str
    opening: Opening | None
    findings: Findings | None
    sections: tuple[Section, ...]
    footer: str = ""
    names: frozenset[str] = field(default=frozenset(), metadata=KEY)  # what users named
    data: Mapping[str, Any] = field(default_factory=dict, metadata=KEY)  # all numbers, for JSON

    def answer(self) -> Document:
        """The verdict and its numbers alone."""
        first = self.opening and replace(self.opening, picture=None, limits=())
        return replace(self, opening=first, findings=None, sections=())

    def in_short(self) -> Document:
        """The first screen, and the findings that ask for something, without their explanation."""
        items = self.findings.items if self.findings else ()
        pressing = [one for one in items if one.severity in ("serious", "caution")]
        findings = Findings(tuple(replace(one, text="") for one in pressing))
        return replace(self, findings=findings, sections=())

    def in_words(self, say: Callable[[str], str]) -> Document:
        """The same document in other words: `say` is asked for every piece of prose."""
        return _reworded(self, say)


def _reworded(thing: Any, say: Callable[[str], str]) -> Any:
    if isinstance(thing, str):
        return say(thing)
    if isinstance(thing, tuple):
        return tuple(_reworded(item, say) for item in thing)
    if isinstance(thing, Figure):
        return replace(thing, say=say)
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    prose = [item.name for item in fields(thing) if not item.metadata.get("key")]
    return replace(thing, **{name: _reworded(getattr(thing, name), say) for name in prose})


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], **how: Any
) -> Table:
    """A table from any sequences; why a row has no numbers is told in the first such cell."""
    return Table(caption, tuple(columns), tuple(map(_with_reasons_once, rows)), **how)


def _with_reasons_once(row: Sequence[Cell]) -> tuple[Cell, ...]:
    return tuple(
        replace(cell, reason="") if isinstance(cell, Missing) and cell in row[:place] else cell
        for place, cell in enumerate(row)
    )


def listing(caption: str, rows: Iterable[Mapping[str, Cell]], **how: Any) -> Table:
    """A table whose rows say heading -> cell, the same headings in each; without rows, none.

    Not where users name columns: two may have one name, as in a `table`.
    """
    records = list(rows)
    heads = list(records[0]) if records else [""]
    return table(caption, heads, [list(row.values()) for row in records], **how)
