"""A document in a terminal: the answer, the findings, and the tables that are not folded.

Text is never parsed as markup here: a group may be called `[/b]`. Tables take the width there is:
numbers beside their intervals, else above them, else one line for each cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import singledispatchmethod
from textwrap import fill, wrap
from typing import Any, TypeVar

from dcem.report import document as doc
from dcem.report.dots import axes_of, line_of
from dcem.report.words import in_field_words
from dcem.table.roles import Roles
from dcem.text import capitalised, in_short

Row = TypeVar("Row")
NO_BREAK = "\u00a0"
HEADING = 18  # letters of a line of a column's heading
MOST_ROWS = 40  # of a table or picture
MOST_REASONS = 12  # below it
COLOURS = {"serious": "red", "caution": "yellow", "note": "dim", "fine": "green"}


def to_terminal(
    document: doc.Document, console: Any, words: str = "general", *, folded: bool = False
) -> None:
    """Print a document to a `rich` console; `folded`: what a page folds away too."""
    Writer(console, folded).document(in_field_words(roles_as_options(document), words))


def roles_as_options(document: doc.Document) -> doc.Document:
    """The document for somebody at a command line: names of roles, in backticks, as options.

    A role that a column or a group is named like stays as it is: it may be that which is meant.
    """
    options = {role.name for role in fields(Roles)} | {"max_rows"}

    def name(found: re.Match[str]) -> str:
        is_option = found[1] in options - document.names
        return f"`--{found[1].replace('_', '-')}`" if is_option else found[0]

    return document.in_words(lambda text: re.sub(r"`(\w+)`", name, text))


class Writer:
    """Prints blocks, one after the other."""

    def __init__(self, console: Any, folded: bool = False) -> None:
        self.console = console
        self.folded = folded
        self.told: set[str] = set()  # reasons, each once in a section

    def document(self, document: doc.Document) -> None:
        """The whole of it."""
        if document.opening is not None:
            self._heading(document.title)
            self._opening(document.opening)
        if document.findings is not None and document.findings.items:
            self._heading("Findings")
            self.block(document.findings)
        for section in document.sections:
            self.block(section)

    def _say(self, text: str, style: str = "", indent: int = 0, mark: str = "") -> None:
        """Print a sentence, with a severity as its `mark` in colour before it."""
        from rich.text import Text

        lines = wrapped(f"{mark}: {text}" if mark else text, self.console.width, indent)
        shown = Text(lines, style=style)
        if mark:
            shown.stylize(f"not bold {COLOURS[mark]}", 0, len(mark) + 1)
        self.console.print(shown)

    def _heading(self, text: str) -> None:
        self.console.print()
        self._say(text, "bold")

    def _opening(self, opening: doc.Opening) -> None:
        verdict = opening.verdict
        lines = [(verdict.severity, verdict.answer)]
        if worst := verdict.worst:
            lines.insert(0, (worst.severity, f"{worst.headline}."))
        for severity, line in lines:
            self._say(line, "bold", mark=severity)
        for sentence in verdict.sentences:
            self._say(sentence)
        self._say(f"How sure? {verdict.certainty}")
        if opening.limits:
            self._heading("What not to conclude")
            for limit in opening.limits:
                self._say(f"- {limit}")
        if opening.numbers:
            self._heading("In numbers")
            for number in opening.numbers:
                self._say(f"{doc.on_one_line(number.cell)}: {number.label}", indent=2)
        if opening.picture is not None:
            self.block(opening.picture)

    @singledispatchmethod
    def block(self, what: object) -> None:
        """Print a block."""
        raise TypeError(f"not a block: {what!r}")

    @block.register
    def _(self, what: doc.Section) -> None:
        quiet = (doc.Figure, doc.Facts) if self.folded else (doc.Figure, doc.Facts, doc.Fold)
        if any(not isinstance(inside, quiet) for inside in what.blocks):
            self.told.clear()
            self._heading(what.title)
            for inside in what.blocks:
                self.block(inside)

    @block.register
    def _(self, what: doc.Findings) -> None:
        for item in what.items:
            self._say(item.headline, "bold", mark=item.severity)
            if item.text:
                self._say(item.text, "dim", indent=4)
            if item.remedy:
                self._say(f"What to do: {item.remedy}", indent=4)

    @block.register
    def _(self, what: doc.Table) -> None:
        if what.start is not None and not self.folded:
            return
        if what.caption:
            self.console.print()
            self._say(what.caption, "dim")
        self._table(what.columns, what.rows, what.words)

    @block.register
    def _(self, what: doc.Dots) -> None:
        self._heading(what.title)
        marked = [doc.on_one_line(row.label) for row in what.rows if row.marked]
        left = len(what.rows) - MOST_ROWS
        what = replace(what, rows=_first(what.rows, lambda row: row.values))
        what = _without_empty_columns(what)
        for width in (24, 12, 0):  # of the picture; in a narrow window, the numbers alone
            columns, rows = _dots(what, width)
            if self._fits(grid := self._grid(columns, rows, (), stacked=False)):
                self.console.print(grid)
                self._reasons(rows)
                break
        else:
            columns = ("", *what.columns)
            self._table(columns, tuple((row.label, *row.values) for row in what.rows))
            if compared := what.compared:
                self._say(capitalised(what.reference), "dim")
                none = (doc.NOTHING,) * len(what.columns)
                beside = [(row.label, row.references or none) for row in what.rows]
                self._table(
                    ("", *(what.columns[place] for place in compared)),
                    tuple((label, *(of[place] for place in compared)) for label, of in beside),
                )
        self._more(left)
        if what.marked:  # what a page shades
            self._say(f"{capitalised(what.marked)}: {in_short(marked) or 'none'}.", "dim")

    def _more(self, left: int) -> None:
        if left > 0:
            self._say(f"... and {left:,} more", "dim")

    def _table(
        self,
        columns: tuple[str, ...],
        rows: tuple[tuple[doc.Cell, ...], ...],
        words: tuple[int, ...] = (),
    ) -> None:
        left, rows = len(rows) - MOST_ROWS, _first(rows, lambda row: row)
        for stacked in (False, True):
            grid = self._grid(columns, rows, words, stacked)
            if self._fits(grid, bool(words)):
                self.console.print(grid)
                break
        else:
            for row in rows:  # too narrow for any table: a line for each cell
                self._say(doc.on_one_line(row[0]), "bold")
                for column, content in zip(columns[1:], row[1:], strict=True):
                    if isinstance(content, doc.Missing):
                        content = content.what  # why is told once, under the table
                    self._say(f"{column}: {doc.on_one_line(content)}", indent=4)
        self._more(left)
        self._reasons(rows)

    def _reasons(self, rows: tuple[tuple[doc.Cell, ...], ...]) -> None:
        """Why cells have no number; whose they are, unless every row lacks one for it."""
        lacking: dict[str, list[str]] = {}
        for row in rows:
            for one in row:
                if isinstance(one, doc.Missing) and one.reason:
                    mine = lacking.setdefault(f"{one.what}: {one.reason}", [])
                    mine += [doc.on_one_line(row[0])] * (doc.on_one_line(row[0]) not in mine)
        for reason, whose in [*lacking.items()][:MOST_REASONS]:
            named = f"{in_short(whose)}: " if len(whose) < len(rows) else ""
            if (line := f"{named}{reason}") not in self.told:
                self.told.add(line)
                self._say(line, "dim")
        self._more(len(lacking) - MOST_REASONS)

    def _fits(self, grid: Any, wraps: bool = False) -> bool:
        roomy = self.console.options.update(max_width=10_000)
        least, most = self.console.measure(grid, options=roomy)
        return bool((least if wraps else most) <= self.console.width)

    def _grid(
        self,
        columns: tuple[str, ...],
        rows: tuple[tuple[doc.Cell, ...], ...],
        words: tuple[int, ...],
        stacked: bool,
    ) -> Any:
        from rich.table import Table

        grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        roomy = self.console.options.update(max_width=10_000)
        cells = [[_rich_cell(content, stacked) for content in row] for row in rows]
        for place, column in enumerate(columns):
            widths = [self.console.measure(row[place], options=roomy).maximum for row in cells]
            left = place == 0 or place in words or not column
            grid.add_column(
                fill(column, HEADING),
                justify="left" if left else "right",
                no_wrap=place not in words,
                min_width=24 if place in words else max(widths, default=0),
            )
        for row in cells:
            grid.add_row(*row)
        return grid

    @block.register
    def _(self, what: doc.Text) -> None:
        for paragraph in what.paragraphs:
            self._say(f"- {paragraph}" if what.bullets else paragraph)

    @block.register
    def _(self, what: doc.Terms) -> None:
        for name, text in what.items:
            self._say(f"{doc.on_one_line(name)}: {text}")

    @block.register
    def _(self, what: doc.Fold) -> None:
        if self.folded:
            self._heading(what.summary)
            for inside in what.blocks:
                self.block(inside)

    @block.register
    def _(self, what: doc.Views) -> None:
        for view in what.views:
            for inside in view.blocks:
                self.block(inside)

    @block.register
    def _(self, what: doc.Figure | doc.Facts) -> None:
        """They are for pages: whoever typed the command knows the facts."""


def wrapped(text: str, width: int, indent: int = 0) -> str:
    """A sentence in lines; a number is not parted from its per cent sign, nor an interval within.

    >>> print(wrapped("Of 100 people 7.5 % [6.1, 8.9] are", 17))
    Of 100 people
    7.5 % [6.1, 8.9]
    are
    """
    kept = re.sub(
        r"\d %|\[[-+.,\d ]+\]", lambda m: m[0].replace(" ", NO_BREAK), without_backticks(text)
    )
    margin = " " * indent
    lines = wrap(
        kept, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
    return "\n".join(lines).replace(NO_BREAK, " ")


def without_backticks(text: str) -> str:
    """A sentence as a terminal shows it: names without backticks."""
    return re.sub(r"`([^`]+)`", r"\1", text)


def _first(rows: tuple[Row, ...], cells: Callable[[Row], Sequence[doc.Cell]]) -> tuple[Row, ...]:
    """The rows that are shown; of too many, those with a number come first."""
    if len(rows) <= MOST_ROWS:
        return rows

    def lacks_numbers(row: Row) -> bool:
        return not any(isinstance(one, doc.Number) for one in cells(row))

    return tuple(sorted(rows, key=lacks_numbers)[:MOST_ROWS])


def _without_empty_columns(what: doc.Dots) -> doc.Dots:
    """A picture without the columns that have nothing for anybody, unless that is all of them."""
    places = [
        place
        for place in range(len(what.columns))
        if any(row.values[place] != doc.NOTHING for row in what.rows)
    ]
    if not places:
        return what
    rows = tuple(
        replace(
            row,
            values=tuple(row.values[place] for place in places),
            references=tuple(row.references[place] for place in places if row.references),
        )
        for row in what.rows
    )
    return replace(what, columns=tuple(what.columns[place] for place in places), rows=rows)


def _dots(what: doc.Dots, width: int) -> tuple[tuple[str, ...], tuple[tuple[doc.Cell, ...], ...]]:
    """Columns and rows of a picture in characters, `width` wide, beside its numbers."""
    axes = axes_of(what)
    columns = [""]
    for i, column in enumerate(what.columns):
        columns += [""] * bool(width) + [column] + [what.reference] * (i in what.compared)
    rows = []
    for row in what.rows:
        cells: list[doc.Cell] = [row.label]
        for i, value in enumerate(row.values):
            references = row.references[i : i + 1]
            line = line_of(axes[i], value, references, width) if width else ""
            cells += [doc.Name(line)] * bool(width) + [value]
            if i in what.compared:
                cells += references or [doc.NOTHING]
        rows.append(tuple(cells))
    return tuple(columns), tuple(rows)


def _rich_cell(content: doc.Cell, stacked: bool) -> Any:
    from rich.text import Text

    if isinstance(content, doc.Missing):
        return Text(content.what, style="dim")
    shown = doc.pieces_of(content)
    style = "dim" if shown.absent else ""
    words = without_backticks(shown.main) if isinstance(content, str) else shown.main
    main = Text(re.sub(r"\s*[\r\n]+\s*", " ", words), style)  # a name from a cell of a workbook
    for piece in (shown.quiet, shown.beside):
        if piece:
            main += Text(("\n" if stacked else " ") + piece, style="dim")
    return main
