"""The console of all commands: colours are its own, text is text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from dcem.cli._terminal import trusted
from dcem.text import printable


class Console(rich.console.Console):
    """Prints like the one of `rich`, but control characters, links and emoji codes of a text."""

    def __init__(self, *, stderr: bool = False, **how: Any) -> None:
        super().__init__(stderr=stderr, **{"highlight": False, "emoji": False, **how})

    @property
    def file(self) -> IO[str]:
        """The stream that is written to."""
        return trusted(super().file)

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Pieces of text with their style, made printable."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                plain = style.update_link(None) if style is not None and style.link else style
                yield Segment(printable(text), plain)

    def status(self, status: Any, **how: Any) -> Status:
        """A line that changes; what it says is text, without markup."""
        return _Status(_as_text(status), console=self, **how)


class _Status(Status):
    def update(self, status: Any = None, **how: Any) -> None:
        """Say something else."""
        super().update(_as_text(status), **how)


def _as_text(status: Any) -> Any:
    return Text(printable(status)) if isinstance(status, str) else status
