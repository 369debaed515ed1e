"""What a piece of Python prints, warns and raises, as a page shows it."""

import contextlib
import io
import textwrap
import warnings
from typing import Any

WIDTH = 96


def output_of(code: str, names: dict[str, Any], where: str, *, may_fail: bool = False) -> str:
    """Run code in a namespace; what came out, messages wrapped to the width of a page.

    With `may_fail`, a refused input is part of the output: the page is about such messages.
    """
    from dcem import InputError

    printed = io.StringIO()
    refused = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            exec(compile(code, where, "exec"), names)
        except InputError as error:
            if not may_fail:
                raise
            refused = [f"InputError: {error}"]
    messages = [f"{w.category.__name__}: {w.message}" for w in caught] + refused
    wrapped = ["\n".join(textwrap.wrap(m, WIDTH, subsequent_indent="  ")) for m in messages]
    return "\n".join([*map(str.rstrip, printed.getvalue().splitlines()), *wrapped]).rstrip()
