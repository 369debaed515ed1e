"""The streams that commands print to: no text of a table acts as a command of the terminal.

While a command runs, all that goes to standard output and standard error passes here. A control
character in a name of a column, a group, a file is shown as `�`, wherever it is printed. Only
`dcem.cli._console.Console`, which does the same to each piece of text, writes colours past it. A
reader who leaves early, as `head` does, is no reason to end: the rest is thrown away, and what was
asked for is computed and written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from dcem.text import printable


class Lasting:
    """A stream that takes what is written also when nobody reads it any more."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text; characters that the stream has no bytes for become question marks."""
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self._let_go()
        except UnicodeEncodeError:
            encoding = self.stream.encoding
            return self.stream.write(text.encode(encoding, "replace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Hand over what is held back."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            self._let_go()

    def _let_go(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "stream"):  # a way around
            raise AttributeError(name)
        return getattr(self.stream, name)


class Shown(Lasting):
    """The same, for text of any origin; `trusted` is for text that was made printable before."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.trusted = Lasting(stream)

    def write(self, text: str) -> int:
        """Write text without control characters."""
        return super().write(printable(text))


def trusted(stream: Any) -> Any:
    """The stream behind one that makes text printable."""
    return stream.trusted if isinstance(stream, Shown) else stream


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let all that is printed in the block pass through `Shown`."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # where a stream was closed before
        out, err = (Shown(nowhere if stream is None else stream) for stream in before)
        sys.stdout, sys.stderr = out, err
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            out.flush()
            err.flush()
