import os

import pytest

from dcem.files import whole_folder, write_text


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


def test_behind_a_link_the_linked_is_replaced(tmp_path) -> None:
    (tmp_path / "page.html").symlink_to("real.html")
    (tmp_path / "current").symlink_to("first")
    (tmp_path / "first").mkdir()
    write_text(tmp_path / "page.html", "new")
    with whole_folder(tmp_path / "current") as partial:
        (partial / "file").write_text("new")
    assert (tmp_path / "real.html").read_text() == "new"
    assert (tmp_path / "first" / "file").read_text() == "new"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["current", "first", "page.html", "real.html"]
