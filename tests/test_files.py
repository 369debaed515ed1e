import os

import pytest

from dcem.files import write_text


def test_writes_whole_files_with_ordinary_permissions(tmp_path) -> None:
    path = tmp_path / "new" / "page.html"
    write_text(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    write_text(path, "old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]


def test_a_failed_write_names_the_file_that_was_wanted(tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match=r"page\.html") as failed:
        write_text(tmp_path / "file" / "page.html", "new")
    assert failed.value.filename == str(tmp_path / "file" / "page.html")
