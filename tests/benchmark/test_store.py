"""The store: claims, leases, and what outlives a crash."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from forked import FORK, started

from dcem.benchmark import database, machine, store
from dcem.benchmark.cells import expand
from dcem.benchmark.read import results, status
from dcem.benchmark.toml_file import load_benchmark
from dcem.table.messages import DataWarning, InputError

VALUES = {"auc": 0.7, "roc_gap": 0.1}


@pytest.fixture
def opened(tmp_path, plain):
    plan, _ = expand(load_benchmark(plain))
    with store.Store(tmp_path / "store.sqlite") as one:
        one.add("plain", "", ["auc"], plan)
        one.want(cell.cell.id for cell in plan)
        yield one


def again(one):
    """The same store as another process would open it."""
    other = store.Store(one.path)
    rows = one._db.execute("SELECT id, place FROM wanted ORDER BY place")
    other.want(i for i, _ in rows.fetchall())
    return other


def test_a_claimed_cell_is_nobody_elses(opened):
    kind = next(iter(opened.pending()))
    with again(opened) as other, opened.worker("cpu", {}), other.worker("cpu", {}):
        first = opened.claim(kind, 4)
        second = other.claim(kind, 100)
        assert len(first.cells) == 4
        assert len(second.cells) == 2
        assert not {c.id for c in first.cells} & {c.id for c in second.cells}
        assert other.claim(kind, 1) is None
        assert not other.finish(first.cells[0].id, VALUES, {})  # not theirs
        assert opened.finish(first.cells[0].id, VALUES, {})
        assert not opened.finish(first.cells[0].id, VALUES, {})  # once


def test_what_a_worker_did_not_finish_is_given_back(opened):
    kind = next(iter(opened.pending()))
    with opened.worker("cpu", {}):
        claim = opened.claim(kind, 6)
        opened.finish(claim.cells[0].id, VALUES, {})
        opened.fail(claim.cells[1].id, "no")
        assert opened.pending().get(kind) is None
    assert opened.pending()[kind] == 4
    assert opened.wanted_counts() == {"done": 1, "failed": 1, "pending": 10}
    assert opened.retry_failed() == 1
    assert opened.pending()[kind] == 5


def test_a_silent_worker_loses_its_cells_and_cannot_commit_them(opened, monkeypatch):
    monkeypatch.setattr(store, "LEASE", -1.0)  # expired as soon as it is given
    kind = next(iter(opened.pending()))
    with again(opened) as other, opened.worker("cpu", {}):
        late = opened.claim(kind, 6)
        monkeypatch.setattr(store, "LEASE", 60.0)
        with other.worker("cpu", {}):
            assert other.pending()[kind] == 6
            taken = other.claim(kind, 6)
            assert {c.id for c in taken.cells} == {c.id for c in late.cells}
            assert not opened.finish(late.cells[0].id, {"auc": 0.0}, {})
            assert other.finish(late.cells[0].id, VALUES, {})
    frame = results(opened.path)
    assert list(frame["auc"]) == [0.7]


def test_a_dead_process_loses_its_cells_at_once(opened):
    """The lease has a minute to go, but the process is gone."""
    kind = next(iter(opened.pending()))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with opened.worker("cpu", {}) as owner:
        opened.claim(kind, 6)
        opened._db.execute(
            "UPDATE workers SET pid = ?, birth = ? WHERE id = ?",
            (child.pid, machine.birth(child.pid), owner),
        )
        assert kind not in opened.pending()
        (before,) = (one for one in status(opened.path) if one.running)
        assert (before.running, before.pending) == (6, 0)
        child.kill()
        child.wait()
        assert [(one.running, one.pending) for one in status(opened.path)] == [(0, 6), (0, 6)]
        assert opened.pending()[kind] == 6


def test_a_reused_process_number_is_not_the_worker(opened):
    kind = next(iter(opened.pending()))
    with opened.worker("cpu", {}) as owner:
        opened.claim(kind, 6)
        opened._db.execute("UPDATE workers SET birth = '1' WHERE id = ?", (owner,))
        assert opened.pending()[kind] == 6


def test_the_lease_is_kept_alive(opened, monkeypatch):
    monkeypatch.setattr(store, "_BEAT", 0.05)
    with opened.worker("cpu", {}) as owner:
        query = "SELECT lease FROM workers WHERE id = ?"
        first = opened._db.execute(query, (owner,)).fetchone()[0]
        deadline = time.monotonic() + 20
        while opened._db.execute(query, (owner,)).fetchone()[0] == first:
            assert time.monotonic() < deadline, "no heartbeat in 20 s"
            time.sleep(0.05)


def test_many_claimants_share_every_cell_once(opened):
    taken, errors = [], []

    def claim_all():
        try:
            with again(opened) as mine, mine.worker("cpu", {}):
                while mine.pending():
                    for kind in mine.pending():
                        claim = mine.claim(kind, 1)
                        if claim is not None:
                            taken.append(claim.cells[0].id)
                            assert mine.finish(claim.cells[0].id, VALUES, {})
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=claim_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(taken) == len(set(taken)) == 12


def test_a_plan_replaces_what_its_label_stood_for(tmp_path, plain):
    with store.Store(tmp_path / "store.sqlite") as one:
        for steps in ("20", "30"):
            text = plain.read_text().replace("steps = 20", f"steps = {steps}")
            plain.write_text(text)
            plan, _ = expand(load_benchmark(plain))
            one.add("plain", "", ["auc"], plan)
    rows = status(tmp_path / "store.sqlite")
    assert [(row.label, row.pending) for row in rows] == [("y-obs", 6), ("tested-only", 6)]


@pytest.fixture
def more(tmp_path, monkeypatch):
    """A further migration: give its SQL, and stores are of a version that is one higher."""

    def add(sql):
        folder = tmp_path / "migrations"
        shutil.copytree(database._MIGRATIONS, folder)
        (folder / f"{database.VERSION + 1}.sql").write_text(sql)
        monkeypatch.setattr(database, "_MIGRATIONS", folder)
        monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
        return database.VERSION

    return add


def test_an_older_store_is_brought_up_to_date(tmp_path, more):
    path = tmp_path / "store.sqlite"
    database.open_database(path, create=True).close()
    version = more("CREATE TABLE more (x);\n")
    connection = database.open_database(path, create=False)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == version
    connection.execute("SELECT x FROM more")
    connection.close()


def test_a_migration_happens_wholly_or_not_at_all(tmp_path, more):
    path = tmp_path / "store.sqlite"
    database.open_database(path, create=True).close()
    version = more("CREATE TABLE more (x);\nCREATE TABLE more (x);\n")
    with pytest.raises(InputError):
        database.open_database(path, create=False)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == version - 1
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'more'").fetchall()


@pytest.fixture
def version_1(tmp_path):
    """A store with results as the first version of the schema wrote them."""
    path = tmp_path / "old" / "store.sqlite"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.executescript((database._MIGRATIONS / "1.sql").read_text())
    connection.executescript(
        """
        PRAGMA user_version = 1;
        INSERT INTO benchmarks VALUES ('mine', 'of old', '["auc"]');
        INSERT INTO workers (id, versions) VALUES ('w', '{"dcem": "0.1"}');
        INSERT INTO cells (id, kind, config, status, owner, metrics, about, finished) VALUES (
            'c', 'k', '{"task": {"kind": "sinusoid", "k": 1.0}, "method": {"name": "dcem",
            "variant": "corrected", "schedule": "fast", "params": {}}, "seed": 3}', 'done', 'w',
            '{"auc": 0.75}', '{"seconds": 2.0}', 1.5);
        INSERT INTO plan VALUES ('mine', 'dcem', 'c', 0);
        """
    )
    connection.close()
    return path


def test_a_store_of_the_version_before_is_read_and_brought_up_to_date(version_1):
    before = version_1.read_bytes()
    old = results(version_1)
    assert old.loc[0, ["auc", "seconds", "versions"]].tolist() == [0.75, 2.0, "dcem 0.1"]
    assert version_1.read_bytes() == before
    store.Store(version_1).close()
    assert version_1.read_bytes() != before
    pd.testing.assert_frame_equal(results(version_1), old)


# -- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def full(opened):
    """The bytes of a store with twelve results, and what they are."""
    with opened.worker("cpu", {"dcem": "1"}):
        for kind in list(opened.pending()):
            for place, cell in enumerate(opened.claim(kind, 99).cells):
                opened.finish(cell.id, {"auc": 0.5 + place / 100}, {"seconds": 1.0})
    path = opened.path.with_name("full.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as copy:
        opened._db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    frame = results(path)
    assert len(frame) == 12
    return path, frame


def test_a_changed_result_is_left_out_and_computed_again(full):
    path, whole = full
    for old, new in ((b'"auc": 0.53', b'"auc": 0.93'), (b'"seconds": 1.0', b'"seconds": \xff.0')):
        path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.warns(DataWarning, match=r"(2|3) results in .* are damaged"):
        sound = results(path)
    kept = whole[whole["cell"].isin(sound["cell"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(sound, kept)
    assert sum(one.pending for one in status(path)) == 12 - len(sound)
    assert "damaged" in status(path)[0].error
    store.Store(path).close()
    assert len(results(path)) == len(sound)  # no warning: they are to do


@pytest.mark.parametrize("n", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_flipped_byte_goes_unnoticed(full, tmp_path, n):
    """Every exported row is as it was; where one is missing, that is told."""
    path, whole = full
    content, rng = path.read_bytes(), np.random.default_rng(0)
    whole, kept, told, refused = whole.set_index(["cell", "label"]), 0, 0, 0
    for place in rng.integers(len(content), size=n):
        damaged = tmp_path / "damaged.sqlite"
        flipped = bytes([content[place] ^ (1 << rng.integers(8))])
        damaged.write_bytes(content[:place] + flipped + content[place + 1 :])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = results(damaged).set_index(["cell", "label"])
            except InputError:
                refused += 1
                continue
        pd.testing.assert_frame_equal(found, whole.loc[found.index], check_dtype=False)
        assert len(found) == len(whole) or caught, place
        told += bool(caught)
        kept += len(found)
    assert told > 0.05 * n
    assert refused < 0.2 * n
    assert kept > 0.9 * 12 * (n - refused)


def test_a_store_with_a_damaged_page_is_exported_but_not_worked_on(full, tmp_path):
    path, whole = full
    content = bytearray(path.read_bytes())
    for start in range(0, len(content), 4096):
        if b"config" not in content[start : start + 4096] and b"0.53" in content[start:][:4096]:
            content[start : start + 8] = b"\xff" * 8  # the head of a page of results
            break
    path.write_bytes(content)
    with pytest.warns(DataWarning, match="damaged"):
        sound = results(path)
    assert 0 < len(sound) < 12
    assert set(sound["cell"]) < set(whole["cell"])
    for use in (store.Store, status):
        with pytest.raises(InputError, match=r"is damaged .*benchmark export"):
            use(path)


@pytest.mark.parametrize("read", [lambda p: database.open_database(p, create=False), status])
def test_a_newer_store_and_other_files_are_refused(tmp_path, read):
    newer = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match="schema version 99"):
        read(newer)
    other = tmp_path / "other.sqlite"
    other.write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(InputError, match="not a benchmark store"):
        read(other)
    with pytest.raises(InputError, match="No store at"):
        read(tmp_path / "absent.sqlite")


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "use",
    [
        lambda p: database.open_database(p, create=False),
        lambda p: database.open_database(p, create=True),
        status,
    ],
)
def test_the_database_of_somebody_else_is_left_alone(tmp_path, use, version):
    path = tmp_path / "precious.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (x)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a benchmark store"):
        use(path)
    assert path.read_bytes() == before


def test_processes_that_make_a_store_at_once_all_have_it(tmp_path):
    ready = FORK.Barrier(4)

    def work():
        for turn in range(40):
            ready.wait()
            store.Store(tmp_path / f"{turn}.sqlite").close()

    for child in [started(work) for _ in range(4)]:
        child.join(60)
        assert child.exitcode == 0


def test_a_store_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "store.sqlite").mkdir()
    with pytest.raises(InputError, match=r"store.sqlite cannot be opened: unable to open"):
        store.Store(tmp_path / "store.sqlite")
    with pytest.raises(InputError, match=r"store.sqlite cannot be read"):
        results(tmp_path)


def test_a_store_that_may_only_be_read_is_refused_at_once(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    store.Store(path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        database.sqlite3, "connect", lambda p, **k: connect(f"file:{p}?mode=ro", uri=True, **k)
    )
    with pytest.raises(InputError, match=r"store.sqlite cannot be written to: .*readonly"):
        store.Store(path)


def test_an_empty_file_is_not_made_into_a_store_by_looking(tmp_path):
    path = tmp_path / "truth.txt"
    path.touch()
    with pytest.raises(InputError, match="not a benchmark store"):
        status(path)
    assert path.stat().st_size == 0


def test_an_archive_with_the_log_of_a_killed_process_has_all_its_results(opened, monkeypatch):
    kind = next(iter(opened.pending()))
    with opened.worker("cpu", {}):
        opened.finish(opened.claim(kind, 1).cells[0].id, VALUES, {})
        archive = opened.path.parent / "archive"
        archive.mkdir()
        for file in opened.path.parent.glob("store.sqlite*"):  # nothing is folded into the file yet
            shutil.copy(file, archive)
    monkeypatch.setattr(database.os, "access", lambda folder, mode: folder != archive)
    assert len(results(archive)) == 1


def test_a_label_that_reads_like_nothing_is_still_a_label(tmp_path):
    table = pd.DataFrame({"method": "dcem", "label": ["None", "NA", "1.0"], "auc": 0.7})
    table.to_csv(tmp_path / "a.csv", index=False)
    assert list(results(tmp_path / "a.csv")["label"]) == ["None", "NA", "1.0"]
