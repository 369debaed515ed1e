"""Sepsis on MIMIC-III: from the raw tables to a selectively labelled task.

`build_cohort` turns a release of MIMIC-III v1.4 into one Parquet file (needs DuckDB); `load_sepsis`
turns that file into a `Task`; `artificial` writes made-up tables of MIMIC's
shape for those without access. Nothing here sends a value of a patient anywhere but into the files
the caller names.
"""
