"""The audit of a table as one page."""

from __future__ import annotations

from collections.abc import Mapping

from dcem.audit.results import Audit
from dcem.report import audit_tables
from dcem.report.figures.audit import draw_audit
from dcem.report.page import render_page

# Section -> its title, the figures it shows, and the tables under them.
SECTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "testing": ("Who is tested", ("risk",), ("testing",)),
    "drivers": ("What drives testing", ("drivers",), ("drivers",)),
    "overlap": (
        "Can the tested speak for the untested?",
        ("overlap", "calibration"),
        ("overlap",),
    ),
    "yields": ("How often tests are positive", (), ("yields",)),
    "prevalence": ("How common is the outcome?", ("prevalence",), ("prevalence",)),
    "independence": (
        "Does the outcome depend on the group, given the features?",
        (),
        ("independence",),
    ),
    "sensitivity": (
        "What could overturn it?",
        ("sensitivity-testing", "sensitivity-prevalence", "sensitivity-performance"),
        ("sensitivity",),
    ),
    "assumptions": ("What all this rests on", (), ("assumptions",)),
    "methods": ("Which methods are defensible here", (), ("methods",)),
}


def render_audit(audit: Audit, title: str, facts: Mapping[str, str]) -> str:
    """The audit as one HTML document; `facts` are what made it: file, hash, roles, versions."""
    drawings = draw_audit(audit)
    drawn = {drawing.name for drawing in drawings}
    tables = audit_tables.all_tables(audit)
    every = [
        (
            name,
            heading,
            [figure for figure in figures if figure in drawn],
            [tables[table] for table in shown if table in tables],
        )
        for name, (heading, figures, shown) in SECTIONS.items()
    ]
    sections = [section for section in every if section[2] or section[3]]
    return render_page(
        "audit.html",
        drawings,
        heading=title,
        lead=audit_tables.lead(audit),
        findings=audit.findings,
        contents=[
            ("findings", "Findings"),
            *((s[0], s[1]) for s in sections),
            ("made", "How it was made"),
        ],
        sections=sections,
        facts=facts,
    )
