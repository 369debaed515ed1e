"""Draw the pictures of the documentation that no other script draws.

    python docs/make/pictures.py [PICTURE ...]

Those of real tables need data that is not part of the project, in a folder `shared` beside the
checkout; where it is absent they are left as they are, and that is said.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import matplotlib

from dcem.audit import audit_labels
from dcem.compare import compare_methods
from dcem.files import whole_file
from dcem.report.audit import audit_document
from dcem.report.cohort import draw_flow
from dcem.report.compare import compare_document
from dcem.report.document import Document, Figure
from dcem.report.figures.task import draw_task
from dcem.report.style import PAPER, RC, Drawing
from dcem.table import Roles, UserTable, propose_roles, read_table
from dcem.tasks import make_sinusoid

IMAGES = Path(__file__).resolve().parents[1] / "img"
SHARED = IMAGES.parents[2] / "shared"
DIABETES = SHARED / "real" / "diabetes130.csv.gz"
MIMIC_DEMO = SHARED / "mimic-iii-demo"
DPI = 150
# Pictures of measurements that take long or need a quiet machine: not drawn again here.
MEASURED = {
    "sepsis-scale.svg": "python speed/bench_sepsis.py --times 1 5 20 50 --plot FILE",
    "workers.svg": "python speed/bench_workers.py --plot FILE",
}


def task() -> dict[str, Drawing]:
    """The simulation: the truth, who was tested, what is seen."""
    return {"sinusoid-task.png": draw_task(make_sinusoid())}


def flow() -> dict[str, Drawing]:
    """Who is left of the stays of MIMIC-III's demo."""
    from dcem.tasks.sepsis.cohort import build_cohort

    with tempfile.TemporaryDirectory() as folder:
        built = build_cohort(MIMIC_DEMO, Path(folder) / "cohort.parquet", show_small_cells=True)
        return {"sepsis-flow.svg": draw_flow(built.flow)}


def diabetes() -> UserTable:
    """The table of HbA1c measurements, with the roles that `dcem init` proposes."""
    return read_table(DIABETES, Roles(**propose_roles(DIABETES).roles))


def audited() -> dict[str, Drawing]:
    """The audit of HbA1c measurements, as in docs/audit.md."""
    table = diabetes()
    drawn = drawings(audit_document(audit_labels(table.problem, sources=table.encoder.sources)))
    names = {"risk": "risk", "sensitivity": "sensitivity-prevalence"}
    return {f"audit-diabetes-{name}.png": drawn[shown] for name, shown in names.items()}


def compared() -> dict[str, Drawing]:
    """The comparison of methods on the same table, as in docs/diabetes.md; some minutes."""
    table = diabetes()
    drawn = drawings(compare_document(compare_methods(table.problem)))
    curves = "roc-dr" if "roc-dr" in drawn else "roc-tested"
    return {"compare-diabetes-roc.png": drawn[curves]}


# What is drawn -> by what, and what it needs.
GENERATORS: dict[tuple[str, ...], tuple[Callable[[], dict[str, Drawing]], Path | None]] = {
    ("sinusoid-task.png",): (task, None),
    ("sepsis-flow.svg",): (flow, MIMIC_DEMO),
    ("audit-diabetes-risk.png", "audit-diabetes-sensitivity.png"): (audited, DIABETES),
    ("compare-diabetes-roc.png",): (compared, DIABETES),
}


def drawings(document: Document) -> dict[str, Drawing]:
    """The figures of a report by name."""

    def found(part: Any) -> Iterator[Drawing]:
        if isinstance(part, Figure):
            drawn = part.draw()
            yield from [drawn] if drawn is not None else []
        elif isinstance(part, tuple | list):
            for one in part:
                yield from found(one)
        elif is_dataclass(part):
            yield from found([getattr(part, one.name) for one in fields(part)])

    return {drawing.name: drawing for drawing in found(document)}


def main(wanted: list[str]) -> None:
    """Draw what is wanted (everything, unless it is named) and can be drawn here."""
    for names, (draw, needs) in GENERATORS.items():
        if wanted and not set(wanted) & set(names):
            continue
        if needs is not None and not needs.exists():
            print(f"left as they are: {', '.join(names)} (no {needs.name} in {needs.parent.name})")
            continue
        for name, drawing in draw().items():
            look: dict[Any, Any] = {**RC, "svg.hashsalt": name}  # the same bytes each time
            about = {"Date": None} if name.endswith(".svg") else None
            with whole_file(IMAGES / name) as partial, matplotlib.rc_context(look):
                drawing.figure.savefig(
                    partial, format=name[-3:], dpi=DPI, facecolor=PAPER, metadata=about
                )
            print(f"wrote {name}")
    for name, command in MEASURED.items():
        print(f"left as it is: {name} (a measurement: {command})")


if __name__ == "__main__":
    main(sys.argv[1:])
