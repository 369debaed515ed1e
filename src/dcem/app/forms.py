"""What was posted: fields, and a file that is written to disk as it arrives.

Every form carries the secret of this start. In a form with a file it comes first, so that not a
byte is kept for somebody who does not have it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from dcem.app.guard import Keys, same
from dcem.estimation.bounds import check_strength
from dcem.table.messages import InputError

SECRET = "secret"  # the name of its field
MOST_FIELDS = 100_000  # a table may have many columns
LONGEST = 1 << 20  # bytes of a field that comes with a file


@dataclass
class Posted:
    """The fields of a form, and the file that came with it."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    file: Path | None = None

    def get(self, name: str, default: str = "") -> str:
        """The value of a field that is there once."""
        return self.fields.get(name, [default])[-1]

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """The value of a field that is a whole number."""
        text = self.get(name) or str(default)
        if not (text.isascii() and text.isdecimal()) or not least <= int(text[:20]) <= most:
            what = name.replace("_", " ")
            raise InputError(f"{what}: {text!r} is not a whole number from {least:,} to {most:,}.")
        return int(text)

    def strength(self) -> float | None:
        """How strong something unmeasured may be; None if nothing was stated."""
        text = self.get("bounds").strip()
        if not text:
            return None
        try:
            return check_strength(float(text))
        except ValueError:
            raise InputError(f"bounds: {text!r} is not a number.") from None

    def require(self, keys: Keys) -> None:
        """Refuse a form that is not of these pages."""
        if not same(self.get(SECRET), keys.form):
            raise HTTPException(403, "This form does not belong to this page. Open the page again.")


async def posted(request: Request, keys: Keys, uploads: Path) -> Posted:
    """Read a form to its end. A file goes to a folder of its own under `uploads`."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind == b"multipart/form-data":
        folder = Path(tempfile.mkdtemp(dir=uploads))
        try:
            found = await _with_file(request, keys, options.get(b"boundary", b""), folder)
        except BaseException:  # also a tab that was closed half-way
            shutil.rmtree(folder, ignore_errors=True)
            raise
    else:
        form = await request.form(max_fields=MOST_FIELDS)
        found = Posted({name: [str(v) for v in form.getlist(name)] for name in form})
    found.require(keys)
    return found


async def _with_file(request: Request, keys: Keys, boundary: bytes, folder: Path) -> Posted:
    reader = _Reader(keys, folder)
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
    except FormParserError as error:
        raise InputError(f"What the browser sent could not be read: {error}.") from None
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise InputError(f"The file could not be kept in {folder.parent}: {why}.") from None
    finally:
        reader.close()
    return reader.found


class _Reader:
    """The parts of a form, one after the other; of a file never more than a chunk in memory."""

    def __init__(self, keys: Keys, folder: Path) -> None:
        self.keys, self.folder = keys, folder
        self.found = Posted()
        self.file: BinaryIO | None = None
        self.name = b""
        self.header: list[bytes] = []
        self.value = bytearray()
        self.disposition = b""

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self.begin,
            "on_header_field": lambda data, start, end: self.header.append(data[start:end]),
            "on_header_value": lambda data, start, end: self.value.extend(data[start:end]),
            "on_header_end": self.header_end,
            "on_headers_finished": self.headers_finished,
            "on_part_data": self.data,
            "on_part_end": self.end,
        }

    def begin(self) -> None:
        self.header, self.value, self.disposition = [], bytearray(), b""

    def header_end(self) -> None:
        if b"".join(self.header).lower() == b"content-disposition":
            self.disposition = bytes(self.value)
        self.header, self.value = [], bytearray()

    def headers_finished(self) -> None:
        _, options = parse_options_header(self.disposition.decode("latin-1"))
        self.name = options.get(b"name", b"")
        if b"filename" not in options:
            return
        self.found.require(self.keys)
        name = _file_name(options[b"filename"])
        if name:
            self.found.file = self.folder / name
            self.file = self.found.file.open("xb")

    def data(self, data: bytes, start: int, end: int) -> None:
        if self.file is not None:
            self.file.write(data[start:end])
        else:
            self.value.extend(data[start:end])
            if len(self.value) > LONGEST:
                raise HTTPException(413, "A field of the form is too long.")

    def end(self) -> None:
        if self.file is not None:
            self.close()
        else:
            name = self.name.decode("utf-8", "replace")
            text = self.value.decode("utf-8", "replace")
            self.found.fields.setdefault(name, []).append(text)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def _file_name(given: bytes) -> str:
    """The last part of a name, without what no file system or terminal should see."""
    name = os.path.basename(given.decode("utf-8", "replace").replace("\\", "/"))
    kept = "".join(letter for letter in name if letter.isprintable()).strip(". ")
    return kept.encode()[-200:].decode("utf-8", "ignore")
