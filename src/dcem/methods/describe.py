"""What the docstring of a method says, in parts: for the documentation and for `dcem methods`."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from dcem.methods.network import NetworkClassifier
from dcem.methods.registry import METHODS, make


@dataclass(frozen=True)
class Parameters:
    """Parameters that are explained together: name -> default, and what they are."""

    defaults: dict[str, Any]
    text: str
    common: bool  # to all methods

    def __str__(self) -> str:
        return ", ".join(f"{name} = {default!r}" for name, default in self.defaults.items())


@dataclass(frozen=True)
class Description:
    """A method in words."""

    name: str
    summary: str
    sections: dict[str, str]  # "Idea", "Assumption", "When it fails", "Variants", "Reference"
    parameters: tuple[Parameters, ...]
    variants: bool
    needs_truth: str  # "yes", "published" (that variant alone) or ""
    needs_group: str  # to predict; likewise


def describe(name: str) -> Description:
    """A method of the registry in words."""
    cls = type(make(name))
    text = inspect.cleandoc(cls.__doc__ or "")
    body, *_ = re.split(r"\n(?:Parameters|Attributes|References)\n-+\n", text)
    sections = {
        match.group(1): " ".join(match.group(2).split())
        for match in re.finditer(r"\*([A-Z][a-z ]+)\.\*\s+(.*?)(?=\n\n|\Z)", body, flags=re.DOTALL)
    }
    reference = re.search(r"References\n-+\n(.*?)(?=\n\n|\Z)", text, flags=re.DOTALL)
    if reference:
        sections["Reference"] = " ".join(reference.group(1).split())
    found: list[Any] = [cls()]
    if hasattr(found[0], "variant"):
        found.append(cls(variant="published"))

    def when(flags: list[bool]) -> str:
        return "yes" if all(flags) else "published" if any(flags) else ""

    return Description(
        name,
        body.split("\n")[0],
        sections,
        _parameters(cls),
        len(found) > 1,
        when([one.uses_truth for one in found]),
        when([one.needs_group for one in found]),
    )


def _parameters(cls: Any) -> tuple[Parameters, ...]:
    """Own parameters first, then those that all methods have; in the order of the docstrings."""
    texts: dict[str, str] = {}
    for owner in cls.__mro__:
        for name, text in _documented(owner).items():
            texts.setdefault(name, text)
    defaults = cls().get_params(deep=False)
    if "variant" in defaults:
        texts = {"variant": '"corrected" or "published": see the variants.'} | texts
    everywhere = NetworkClassifier.__dataclass_fields__
    together: dict[tuple[bool, str], dict[str, Any]] = {}
    for name in (name for name in texts if name in defaults):
        together.setdefault((name in everywhere, texts[name]), {})[name] = defaults[name]
    listed = [Parameters(named, text, common) for (common, text), named in together.items()]
    return tuple(sorted(listed, key=lambda one: one.common))


def _documented(owner: type) -> dict[str, str]:
    """Parameter -> text, from the numpydoc section of a docstring."""
    text = inspect.cleandoc(owner.__dict__.get("__doc__") or "")
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n[A-Z]\w+\n-+\n|\Z)", text, flags=re.DOTALL)
    found = {}
    for entry in re.split(r"\n(?=\S)", section.group(1)) if section else []:
        names, _, body = entry.partition("\n")
        for name in names.split(","):
            found[name.strip()] = " ".join(body.split())
    return found


def describe_all() -> list[Description]:
    """All methods in words, in the order of the registry."""
    return [describe(name) for name in METHODS]
