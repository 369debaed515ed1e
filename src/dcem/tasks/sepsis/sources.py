"""Where the MIMIC-III tables lie, what is wanted of them, and whether they are what they claim.

The release is taken as downloaded: a folder of `TABLE.csv`, `TABLE.csv.gz` or `TABLE.parquet` in
either case, or one DuckDB file. Headers are lower-cased here and nowhere else, columns are chosen
by name, and every type is given: no sniffer ever looks at the data. `CHARTEVENTS.value` stays text
and keeps its blanks, because two criteria compare text exactly.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcem.table.messages import InputError, nearest, notice

# Every column of the real tables, in their order; a star marks what the queries read, and the
# others are never parsed.
_COLUMNS: dict[str, str] = {
    "icustays": "row_id subject_id* hadm_id* icustay_id* dbsource* first_careunit last_careunit "
    "first_wardid last_wardid intime* outtime* los",
    "admissions": "row_id subject_id* hadm_id* admittime* dischtime deathtime admission_type "
    "admission_location discharge_location insurance language religion marital_status ethnicity* "
    "edregtime edouttime diagnosis hospital_expire_flag has_chartevents_data*",
    "patients": "row_id subject_id* gender* dob* dod dod_hosp dod_ssn expire_flag",
    "services": "row_id subject_id hadm_id* transfertime* prev_service curr_service*",
    "prescriptions": "row_id subject_id hadm_id* icustay_id startdate* enddate drug_type* drug* "
    "drug_name_poe drug_name_generic formulary_drug_cd gsn ndc prod_strength dose_val_rx "
    "dose_unit_rx form_val_disp form_unit_disp route*",
    "microbiologyevents": "row_id subject_id hadm_id* chartdate* charttime* spec_itemid "
    "spec_type_desc org_itemid org_name isolate_num ab_itemid ab_name dilution_text "
    "dilution_comparison dilution_value interpretation",
    "labevents": "row_id subject_id* hadm_id* itemid* charttime* value* valuenum* valueuom flag",
    "chartevents": "row_id* subject_id hadm_id icustay_id* itemid* charttime* storetime cgid "
    "value* valuenum* valueuom warning error* resultstatus stopped",
    "inputevents_mv": "row_id subject_id hadm_id icustay_id* starttime* endtime itemid* amount "
    "amountuom rate* rateuom storetime cgid orderid linkorderid ordercategoryname "
    "secondaryordercategoryname ordercomponenttypedescription ordercategorydescription "
    "patientweight totalamount totalamountuom isopenbag continueinnextdept cancelreason "
    "statusdescription* comments_editedby comments_canceledby comments_date originalamount "
    "originalrate",
    "outputevents": "row_id subject_id hadm_id icustay_id* charttime* itemid* value* valueuom "
    "storetime cgid stopped newbottle iserror",
    "procedureevents_mv": "row_id subject_id hadm_id icustay_id* starttime* endtime itemid* value "
    "valueuom location locationcategory storetime cgid orderid linkorderid ordercategoryname "
    "secondaryordercategoryname ordercategorydescription isopenbag continueinnextdept "
    "cancelreason statusdescription comments_editedby comments_canceledby comments_date",
    "d_items": "row_id itemid* label* abbreviation dbsource* linksto category unitname param_type "
    "conceptid",
}
COLUMNS = {table: text.replace("*", "").split() for table, text in _COLUMNS.items()}
_COLUMNS_OF_TYPE = {
    "DOUBLE": "valuenum rate",
    "TIMESTAMP": "intime outtime admittime dob transfertime startdate chartdate charttime "
    "starttime",
    "VARCHAR": "dbsource ethnicity gender curr_service drug_type drug route value label "
    "statusdescription",
}
_TYPES = {column: kind for kind, columns in _COLUMNS_OF_TYPE.items() for column in columns.split()}

# Table -> column -> type; what is neither text, time nor measurement is a whole number.
TABLES: dict[str, dict[str, str]] = {
    table: {name[:-1]: _TYPES.get(name[:-1], "BIGINT") for name in text.split() if "*" in name}
    for table, text in _COLUMNS.items()
}
TABLES["outputevents"]["value"] = "DOUBLE"

_ROWS = (  # table, rows in the full release of MIMIC-III v1.4, rows in its demo
    ("icustays", 61_532, 136),
    ("admissions", 58_976, 129),
    ("patients", 46_520, 100),
    ("services", 73_343, 163),
    ("prescriptions", 4_156_450, 10_398),
    ("microbiologyevents", 631_726, 2_003),
    ("labevents", 27_854_055, 76_074),
    ("chartevents", 330_712_483, 758_355),
    ("inputevents_mv", 3_618_991, 13_224),
    ("outputevents", 4_349_218, 11_320),
    ("procedureevents_mv", 258_066, 753),
    ("d_items", 12_487, 12_487),
)
RELEASE_ROWS = {
    "full": {table: full for table, full, _ in _ROWS},
    "demo": {table: demo for table, _, demo in _ROWS},
}

ARTIFICIAL_MARK = "ARTIFICIAL.json"
_SUFFIXES = (".parquet", ".csv", ".csv.gz")  # in order of preference: fastest to scan first


@dataclass(frozen=True)
class SourceTable:
    """One table: its file, and the SQL expression that reads its wanted columns."""

    path: Path
    sql: str
    fingerprint: str


@dataclass(frozen=True)
class Mimic:
    """All tables of one release, found and checked for their columns (not yet read)."""

    root: Path
    sources: dict[str, SourceTable]
    artificial: bool

    def attach(self, connection: Any) -> None:
        """Make every table readable as `mimic.<table>` in this connection."""
        if self.root.is_file():
            connection.execute(f"ATTACH {sql_text(self.root)} AS release (READ_ONLY)")
        connection.execute("CREATE SCHEMA IF NOT EXISTS mimic")
        for table, source in self.sources.items():
            connection.execute(f"CREATE OR REPLACE VIEW mimic.{table} AS {source.sql}")


def find_tables(mimic: str | Path) -> Mimic:
    """Look for every table in a folder, or in a DuckDB file, and check that its columns exist.

    Raises `InputError` naming the tables that are missing, or the file
    whose header lacks a column, before anything is read at length.
    """
    root = Path(mimic)
    if root.is_dir():
        return _in_folder(root)
    if root.is_file():
        return _in_database(root)
    raise InputError(
        f"{root} does not exist. Give the folder that holds ICUSTAYS.csv.gz, CHARTEVENTS.csv.gz "
        "and the other tables of MIMIC-III v1.4, or a DuckDB file that holds them."
    )


def sql_text(text: str | Path) -> str:
    """A string literal of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _in_folder(root: Path) -> Mimic:
    by_name = {path.name.lower(): path for path in sorted(root.iterdir()) if path.is_file()}
    found: dict[str, Path] = {}
    for table in TABLES:
        paths = [by_name[table + end] for end in _SUFFIXES if table + end in by_name]
        if paths:
            found[table] = paths[0]
    missing = [table.upper() for table in TABLES if table not in found]
    if missing:
        raise InputError(
            f"{root} has no file for {', '.join(missing)}. Looked for TABLE.csv.gz, TABLE.csv and "
            "TABLE.parquet in either case. Download the table, or unpack the folder again; "
            "INPUTEVENTS_CV and NOTEEVENTS are not needed."
        )
    sources = {table: _file_source(table, path) for table, path in found.items()}
    return Mimic(root, sources, (root / ARTIFICIAL_MARK).is_file())


def _file_source(table: str, path: Path) -> SourceTable:
    wanted = TABLES[table]
    if path.suffix == ".parquet":
        names = _parquet_columns(path)
        relation = f"read_parquet({sql_text(path)})"
    else:
        names = _csv_header(path)
        types = {name.lower(): wanted.get(name.lower(), "VARCHAR") for name in names}
        columns = ", ".join(f"{sql_text(name)}: {sql_text(kind)}" for name, kind in types.items())
        relation = (
            f"read_csv({sql_text(path)}, auto_detect = false, header = true, delim = ',', "
            f"quote = '\"', escape = '\"', nullstr = '', columns = {{{columns}}})"
        )
    sql = _typed(table, relation, path.name, names)
    return SourceTable(path, sql, _fingerprint(path))


def _in_database(path: Path) -> Mimic:
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            rows = connection.execute(
                "SELECT table_schema, table_name, column_name FROM information_schema.columns"
            ).fetchall()
    except duckdb.Error:
        raise InputError(
            f"{path} is not a DuckDB file that this version of DuckDB can open. Give the folder of "
            "MIMIC-III tables, or a DuckDB file that holds them."
        ) from None
    columns: dict[tuple[str, str], list[str]] = {}
    for schema, name, column in rows:
        columns.setdefault((schema, name), []).append(column)
    found = {name.lower(): (schema, name) for schema, name in columns}
    for schema, name in columns:
        if name.lower() in TABLES and found[name.lower()] != (schema, name):
            raise InputError(
                f"{path.name} has {name.upper()} in the schemas {schema!r} and "
                f"{found[name.lower()][0]!r}. Which one is meant? Keep one release in the file."
            )
    missing = [table.upper() for table in TABLES if table not in found]
    if missing:
        raise InputError(
            f"{path.name} has no table {', '.join(missing)}. Load the missing tables of MIMIC-III "
            "v1.4 into it, or give the folder of downloaded files."
        )
    stamp = _fingerprint(path)
    sources = {}
    for table in TABLES:
        schema, name = found[table]
        where, names = f"{path.name} (table {name})", columns[schema, name]
        sql = _typed(table, f'release."{schema}"."{name}"', where, names)
        sources[table] = SourceTable(path, sql, stamp)
    return Mimic(path, sources, "artificial" in found)


def _typed(table: str, relation: str, where: str, names: list[str]) -> str:
    """The query for the wanted columns of a table, which must be among the names it has."""
    have = [name.lower() for name in names]
    strange = [name for name in have if name not in COLUMNS[table]]
    for column in TABLES[table]:
        if column not in have:
            guess = nearest(column, strange)
            hint = f" Did somebody rename it to {guess!r}?" if guess else ""
            raise InputError(
                f"{where} has no column {column!r}.{hint} Its header has: {', '.join(have)}. "
                "The queries need the column names of MIMIC-III v1.4, in either case."
            )
    select = ", ".join(f'CAST("{c}" AS {kind}) AS {c}' for c, kind in TABLES[table].items())
    return f"SELECT {select} FROM {relation}"


def _csv_header(path: Path) -> list[str]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader(lines), [])
            first_row = next(lines, "").strip()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise InputError(
            f"{path.name} cannot be read from its first line: it is damaged or not what its ending "
            "says. Download it again."
        ) from None
    if not header:
        raise InputError(f"{path.name} is empty: it has not even a header. Download it again.")
    if not first_row:
        raise InputError(f"{path.name} has a header but no rows. Download it again.")
    return header


def _parquet_columns(path: Path) -> list[str]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError):
        raise InputError(
            f"{path.name} is not a readable Parquet file: damaged, or cut short. Write it again."
        ) from None
    if file.metadata.num_rows == 0:
        raise InputError(f"{path.name} has columns but no rows. Write it again.")
    return list(file.schema_arrow.names)


def _fingerprint(path: Path) -> str:
    """Size, time of change and both ends of the file: any ordinary change shows in one of them."""
    stat, ends = path.stat(), hashlib.sha256()
    with path.open("rb") as file:
        ends.update(file.read(65_536))
        file.seek(max(0, stat.st_size - 65_536))
        ends.update(file.read())
    return json.dumps([path.name, stat.st_size, stat.st_mtime_ns, ends.hexdigest()])


def readable_failure(error: Exception, mimic: Mimic, tables: list[str]) -> InputError:
    """What DuckDB said while reading these tables, without the values it quotes.

    Those belong to patients. Where DuckDB does not name the file, all that were read are named.
    """
    text = str(error)
    files = list(dict.fromkeys(mimic.sources[table].path.name for table in tables))
    where = " or ".join([name for name in files if name in text][:1] or files) or str(mimic.root)
    if "GZIP" in text.upper():
        return InputError(
            f"{where} ends too early: the gzip stream is cut short or damaged. Download it again "
            "and compare its size with the one the release lists."
        )
    line = re.search(r"CSV Error on Line: (\d+)", text)
    column = re.search(r"[Cc]olumn:? \"?(\w+)", text)
    place = f", line {line.group(1)}" if line else ""
    place += f", column {column.group(1).lower()!r}" if column else ""
    kind = type(error).__name__
    return InputError(
        f"{where} cannot be read{place}: a value does not have the type of MIMIC-III v1.4, or the "
        f"line has the wrong number of fields ({kind}). Compare the line with the release."
    )


def recognise(rows: dict[str, int], artificial: bool) -> str:
    """Which release these row counts belong to: "full", "demo", "artificial" or "other"."""
    if artificial:
        return "artificial"
    for release, expected in RELEASE_ROWS.items():
        if rows["icustays"] == expected["icustays"]:
            return release
    return "other"


def check_rows(release: str, rows: dict[str, int], mimic: Mimic, *, claimed: bool) -> None:
    """A claimed release must have its row counts; a recognised one is only spoken of."""
    for table, expected in RELEASE_ROWS.get(release, {}).items():
        if rows.get(table, expected) == expected:
            continue
        has = f"{mimic.sources[table].path.name} has {rows[table]:,} rows"
        if not claimed:
            notice(
                f"{has}, but ICUSTAYS is that of the {release} release of MIMIC-III v1.4, where it "
                f"has {expected:,}. Building from what is there."
            )
            continue
        other = "demo" if release == "full" else "full"
        is_other = rows[table] == RELEASE_ROWS[other][table]
        verdict = f"It is the {other} release." if is_other else "It is cut short or altered."
        raise InputError(
            f"{has}; the {release} release of MIMIC-III v1.4 has {expected:,}. {verdict} Give the "
            "right folder, or leave `release` out to build from what is there."
        )
