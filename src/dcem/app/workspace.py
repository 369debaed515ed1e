"""Which files may be read, and where what was computed is kept.

A *study* is one table with the roles of its columns and the runs on it: a folder under the work
folder, readable without the app. Tables stay where they are; one that was handed over through the
browser lies in a private folder that is removed when the app ends.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcem.app.places import Place, looks_readable
from dcem.files import held, read_bytes, remove_unheld, write_text
from dcem.table.formats import parquet_files
from dcem.table.messages import InputError, did_you_mean
from dcem.table.read import READ_SUFFIXES
from dcem.table.roles import Roles
from dcem.table.settings import NAME as SETTINGS
from dcem.table.settings import Reasons, Settings, read_settings, settings_text

UPLOADS = "dcem-app-"  # locked while it is used: what a killed process left behind is removed
TEXTS = "people_query", "error", "words"  # of what was left on the pages
SAVING = threading.Lock()  # two tabs may post at once
LEFT = re.compile(rf"{UPLOADS}[0-9a-f]{{16}}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")


@dataclass(frozen=True)
class Study:
    """One table, the roles of its columns, and a folder for what is computed from it."""

    folder: Path  # where its runs are
    table: Path  # the file, or the folder of Parquet files
    start: Path  # where the app was started: commands run there, and paths are shown from there
    settings: Settings  # roles, words and how the file is read: the `dcem.toml` of the study
    # What a person left on the pages: `draft` and `error` of roles that do not fit, `people` and
    # `people_query`, the table to be scored.
    left: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name in addresses."""
        return self.folder.name

    @property
    def place(self) -> Place:
        """The table in its file."""
        return Place(self.table, self.reading.get("query"))

    @property
    def people(self) -> Place:
        """The table whose people are scored: the one that was chosen, if it is still there."""
        chosen = Place(Path(self.left.get("people", self.table)), self.left.get("people_query"))
        return chosen if "people" in self.left and chosen.exists() else self.place

    @property
    def reading(self) -> dict[str, Any]:
        """How the file is read, as arguments of `read_table`: `query` and `sample_rows`, if set."""
        shared = self.settings.shared
        return {name: shared[name] for name in ("query", "sample_rows") if name in shared}

    @property
    def roles(self) -> Roles | None:
        """The roles, once they were said."""
        return Roles.from_plain(self.settings.roles) if self.settings.roles else None

    @property
    def positives_only(self) -> bool:
        """Whether nobody recorded who was tested."""
        return self.roles is not None and self.roles.positives_only

    @property
    def words(self) -> str:
        """The field whose words reports use."""
        return str(self.settings.shared.get("words", "general"))

    @property
    def spoken(self) -> str | None:
        """The same, where they have to be asked for."""
        return None if self.words == "general" else self.words

    def shown(self, path: Path) -> str:
        """A path as one would type it in the folder of the start."""
        return typed(path, self.start)

    def say(self, roles: dict[str, Any], reasons: Reasons | None = None, **choices: Any) -> None:
        """Write roles, and choices for all commands, to `dcem.toml`; None forgets a choice."""
        said = {**self.settings.shared, **choices}
        kept = {name: value for name, value in said.items() if value not in (None, "general")}
        text = settings_text(Settings(None, roles, {"": kept}), reasons=reasons)
        write_text(self.folder / SETTINGS, text)

    def leave(self, **what: Any) -> None:
        """Remember what was left on the pages; None forgets it."""
        kept = {name: value for name, value in {**self.left, **what}.items() if value}
        plain = {"table": str(self.table), **kept}
        with SAVING:
            write_text(self.folder / "study.json", json.dumps(plain, indent=1, ensure_ascii=False))


@dataclass(frozen=True)
class Work:
    """All studies, and the folders whose tables may be read."""

    folders: tuple[Path, ...]  # resolved; nothing outside is read, also not through a link
    out: Path  # the work folder: a folder for each study
    uploads: Path  # private, and removed at the end

    @property
    def start(self) -> Path:
        """Where commands run."""
        return self.folders[0]

    def inside(self, given: str) -> Path:
        """The file or folder that was meant, if it may be read; otherwise an error that helps."""
        try:
            path = (self.start / Path(given.strip()).expanduser()).resolve()
            allowed = self._is_open(path)
            exists = allowed and path.exists()
        except (OSError, ValueError, RuntimeError):
            raise InputError(f"{given!r} cannot be the name of a file.") from None
        if not allowed:
            raise InputError(
                f"{given!r} is outside the folders that these pages may read: "
                f"{', '.join(map(str, self.folders))}. Start `dcem app` with the folder of the "
                "file, or drop the file on the page."
            )
        if exists and path.is_dir() and not all(map(self._is_open, parquet_files(path))):
            raise InputError(f"{given!r} holds links to files that these pages may not read.")
        if not exists:
            near = [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else []
            raise InputError(f"There is no file {given!r}.{did_you_mean(path.name, near)}")
        return path

    def _is_open(self, path: Path) -> bool:
        """Whether it is in the folders that may be read, wherever a link leads."""
        real = path.resolve()
        return any(real.is_relative_to(one) for one in (*self.folders, self.uploads))

    def of_role(self, given: str | None, columns: Sequence[str]) -> str | None:
        """The role `testing_probability`: a column, or a list of tests that may be read.

        It is the only role that may name a file.
        """
        if not given or given in columns:
            return given
        try:
            path = (self.start / Path(given)).resolve()
            is_open = self._is_open(path) or path.is_relative_to(self.out)
        except (OSError, ValueError, RuntimeError):
            raise InputError(f"{given!r} cannot be the name of a file.") from None
        if not is_open or (Path(given).is_file() and not path.is_file()):
            raise InputError(
                f"{given!r} is neither a column nor in the folders that these pages may read: "
                f"{', '.join(map(str, self.folders))}."
            )
        return str(path) if path.is_file() else given

    def listing(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """Folders in a folder, and tables; a folder of Parquet files is both."""
        found = sorted(folder.iterdir(), key=lambda one: one.name.casefold())
        shown = [one for one in found if not one.name.startswith(".") and one != self.out]
        tables = [one for one in shown if looks_readable(one)]
        return [one for one in shown if one.is_dir()], tables

    def studies(self) -> list[Study]:
        """Those whose table is still there, the latest first."""
        files = [file for file in self.out.glob("*/study.json") if file.is_file()]
        found = [self._read(file) for file in sorted(files, key=lambda f: -f.stat().st_mtime)]
        return [study for study in found if study is not None and study.place.exists()]

    def study(self, name: str) -> Study:
        """The study of this name."""
        found = self._read(self.out / name / "study.json") if NAME.fullmatch(name) else None
        if found is None or not found.place.exists():
            raise LookupError(name)
        return found

    def _read(self, file: Path) -> Study | None:
        """A study as it was left; None if its file is damaged or its table may not be read."""
        try:
            plain = json.loads(read_bytes(file))
            table = self.inside(plain.pop("table"))
            settings = file.parent / SETTINGS
            said = read_settings(settings) if settings.exists() else Settings()
            if "people" in plain and not self._is_open(Path(plain["people"])):
                del plain["people"]  # a link since it was chosen
            if any(not isinstance(plain.get(name, ""), str) for name in TEXTS):
                return None
            if not isinstance(plain.get("draft", {}), dict):
                return None
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError):
            return None
        return Study(file.parent, table, self.start, said, plain)

    def open(self, place: Place) -> Study:
        """The study of a table: the one there is, or a new one."""
        if not place.exists():
            raise InputError(
                f"{place.path.name!r} is not a table. Tables end in {', '.join(READ_SUFFIXES)}; a "
                "folder of Parquet files is also a table."
            )
        place.header()  # what cannot be read is said at once
        for study in self.studies():
            if study.place == place:
                return study
        study = Study(self._new_folder(place.path), place.path, self.start, Settings(), {})
        study.leave()
        if place.query is not None:
            study.say({}, query=place.query)
        return self.study(study.name)

    def _new_folder(self, table: Path) -> Path:
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", table.name.partition(".")[0]).strip("-_")[:50]
        self.out.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, 10_000):
            folder = self.out / ((stem or "table") + (f"-{number}" if number > 1 else ""))
            try:
                folder.mkdir(mode=0o700)
                return folder
            except FileExistsError:
                continue
        raise InputError(f"{self.out} holds too many studies of {table.name!r}.")


def typed(path: Path, start: Path) -> str:
    """A path as one would type it in the folder `start`."""
    text = str(path.relative_to(start) if path.is_relative_to(start) else path)
    return f"./{text}" if text.startswith("-") else text


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only this user can enter, removed at the end; also what earlier ones left."""
    place = Path(tempfile.gettempdir()).resolve()
    owner = getattr(os, "getuid", lambda: None)()
    for left in place.glob(f"{UPLOADS}*"):
        with suppress(OSError):  # of somebody else, or gone by now
            is_ours = LEFT.fullmatch(left.name) and left.lstat().st_uid == owner
            if is_ours and left.is_dir():
                remove_unheld(left)
    while True:
        folder = place / f"{UPLOADS}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        with held(folder):
            if not folder.exists():  # removed by another start, before it was locked
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return
