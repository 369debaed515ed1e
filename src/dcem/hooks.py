"""The one way up: what an object can ask of a layer above its own, looked up when it is asked.

An estimator saves itself and a result shows itself, although writing folders and pages lies in
layers that know estimators and results. Each such way is declared here by name; no module below
imports one above it.
"""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from dcem.extras import extra_needed

HOOKS = {
    "save": "dcem.saving.folder",
    "load_model": "dcem.saving.folder",
    "export_onnx": "dcem.saving.onnx",
    "audit_document": "dcem.report.audit",
    "compare_document": "dcem.report.compare",
    "found_document": "dcem.report.positives_only",
    "found_comparison_document": "dcem.report.positives_only",
    "card_document": "dcem.report.card",
    "fitted_document": "dcem.report.fitted",
    "monitor_document": "dcem.report.monitor",
    "to_html": "dcem.report.to_html",
    "for_notebook": "dcem.report.to_html",
    "to_markdown": "dcem.report.to_markdown",
    "to_json": "dcem.report.to_json",
}


def above(name: str) -> Any:
    """The function of that name, from the layer that has it."""
    return getattr(import_module(HOOKS[name]), name)


class ShowsItself:
    """A result that shows itself in a notebook and writes itself, as the commands do.

    `words` are those of a field: general, medicine, credit or policing.
    """

    _document: ClassVar[str]  # the hook that makes a document of it

    def document(self, *about: Any, **how: Any) -> Any:
        """The result as a document of values, which the writers of `dcem.report` write."""
        return above(self._document)(self, *about, **how)

    def __repr__(self) -> str:
        """The answer alone: the numbers behind it fill pages."""
        return str(above("to_markdown")(self.document().answer()))

    def _repr_html_(self) -> str:
        with extra_needed("the report"):
            return str(above("for_notebook")(self.document()))

    def to_html(self, path: str | PathLike[str] | None = None, *, words: str = "general") -> str:
        """The report as one HTML page, written to `path` if one is given."""
        return self._written("to_html", path, words)

    def to_markdown(
        self, path: str | PathLike[str] | None = None, *, words: str = "general"
    ) -> str:
        """The report as Markdown, written to `path` if one is given."""
        return self._written("to_markdown", path, words)

    def to_json(self, path: str | PathLike[str] | None = None, *, words: str = "general") -> str:
        """The answer and all numbers as JSON, written to `path` if one is given."""
        return self._written("to_json", path, words)

    def _written(self, writer: str, path: str | PathLike[str] | None, words: str) -> str:
        from dcem.files import write_text

        with extra_needed("the report"):
            text = str(above(writer)(self.document(), words))
        if path is not None:
            write_text(Path(path), text)
        return text
