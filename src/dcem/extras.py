"""What is loaded on first use, and libraries of an extra: what is said where one is missing."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "torch": "networks",
    "matplotlib": "report",
    "duckdb": "formats",
    "fsspec": "formats",
    "pyreadstat": "formats",
    "python_calamine": "formats",
    "xlsxwriter": "formats",
    "adbc_driver_postgresql": "formats",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "fairlearn": "fairlearn",
    "ray": "ray",
    "starlette": "app",
    "uvicorn": "app",
    "jinja2": "app",
    "python_multipart": "app",
}


class MissingExtra(ImportError):
    """Something was asked for that needs an extra which is not installed."""


def is_installed(library: str) -> bool:
    """Whether a library is here, without loading it."""
    return find_spec(library) is not None


def is_missing(what: str, library: str) -> str:
    """One clause that names the extra which brings a library."""
    return f"{what} needs {library}, which is not installed: pip install 'dcem[{EXTRAS[library]}]'"


def missing_extra(error: ModuleNotFoundError, what: str = "this") -> str | None:
    """The same of a failed import; None for a module that no extra brings."""
    library = (error.name or "").partition(".")[0]
    return is_missing(what, library) if library in EXTRAS else None


def versions() -> dict[str, str]:
    """Name -> version of all that numbers come from; an extra that is not installed has none."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    from dcem import __version__

    found = {"dcem": __version__, "Python": python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "lightgbm", "torch"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def made_with() -> str:
    """The same in a line."""
    return ", ".join(f"{name} {version}" for name, version in versions().items())


@contextmanager
def extra_needed(what: str, instead: str = "") -> Iterator[None]:
    """Where a library of an extra is missing, say which extra has it, and what works without."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = missing_extra(error, what)
        if message is None:
            raise
        raise MissingExtra(f"{message}. {instead}" if instead else message) from None


def on_first_use(
    package: str, home: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562) whose names are loaded when asked for.

    `home` says from which of its modules; a name that stands for itself is a module.
    """

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extra_needed(name):
            value: Any = import_module(f"{package}.{home[name]}")
        if home[name] != name:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*home, *getattr(sys.modules[package], "__all__", ())})
