"""Benchmark files, each damaged in one place: a line lost, a value of another kind, a byte."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import numpy as np

VALUES = ("", "true", "-1", '"x"', "[]", "{}", "1e999", "nan", '"\\u0000"', "[[1]]", "10000000000")
PRESETS = ("methods", "search-sar-em", "sepsis-shown", "grid")


def configurations() -> Iterator[tuple[str, bytes]]:
    """A name for each, and its content."""
    rng = np.random.default_rng(2)
    for preset in PRESETS:
        file = resources.files("dcem.benchmark") / "presets" / f"{preset}.toml"
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines):
            name, equals, _ = line.partition("=")
            if not equals or name.strip().startswith("#"):
                continue
            for value in VALUES:
                changed = [*lines[:number], f"{name}= {value}", *lines[number + 1 :]]
                yield f"{preset} {number} {value}", "\n".join(changed).encode()
            left = lines[:number] + lines[number + 1 :]
            yield f"{preset} without {number}", "\n".join(left).encode()
        for number in range(20):
            content = bytearray(text.encode())
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
            yield f"{preset} byte {number}", bytes(content)
