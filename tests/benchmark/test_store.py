"""The store: claims, leases, and what outlives a crash."""

import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from dcem.benchmark import schema, store, workers
from dcem.benchmark.cells import expand
from dcem.benchmark.file import load
from dcem.benchmark.read import results, status
from dcem.table.checks import InputError

VALUES = {"auc": 0.7, "roc_gap": 0.1}


@pytest.fixture
def opened(tmp_path, plain):
    plan, _ = expand(load(plain))
    with store.Store(tmp_path / "store.sqlite") as one:
        one.add("plain", "", ["auc"], plan)
        one.want(cell.cell.id for cell in plan)
        yield one


def again(one):
    """The same store as another process would open it."""
    other = store.Store(one.path)
    rows = one._connection.execute("SELECT id, place FROM wanted ORDER BY place")
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
        opened._connection.execute(
            "UPDATE workers SET pid = ?, birth = ? WHERE id = ?",
            (child.pid, workers.birth(child.pid), owner),
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
        opened._connection.execute("UPDATE workers SET birth = '1' WHERE id = ?", (owner,))
        assert opened.pending()[kind] == 6


def test_the_lease_is_kept_alive(opened, monkeypatch):
    monkeypatch.setattr(store, "_BEAT", 0.05)
    with opened.worker("cpu", {}) as owner:
        query = "SELECT lease FROM workers WHERE id = ?"
        first = opened._connection.execute(query, (owner,)).fetchone()[0]
        deadline = time.monotonic() + 20
        while opened._connection.execute(query, (owner,)).fetchone()[0] == first:
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
            plan, _ = expand(load(plain))
            one.add("plain", "", ["auc"], plan)
    rows = status(tmp_path / "store.sqlite")
    assert [(row.label, row.pending) for row in rows] == [("y-obs", 6), ("tested-only", 6)]


def test_an_older_store_is_brought_up_to_date(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    schema.open_database(path, create=True).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE more (x);\n"))
    monkeypatch.setattr(schema, "VERSION", 2)
    connection = schema.open_database(path, create=False)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 2
    connection.execute("SELECT x FROM more")
    connection.close()


def test_a_migration_happens_wholly_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    schema.open_database(path, create=True).close()
    broken = "CREATE TABLE more (x);\nCREATE TABLE more (x);\n"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    monkeypatch.setattr(schema, "VERSION", 2)
    with pytest.raises(InputError):
        schema.open_database(path, create=False)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'more'").fetchall()


@pytest.mark.parametrize("read", [lambda p: schema.open_database(p, create=False), status])
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
    with pytest.raises(InputError, match="There is no store"):
        read(tmp_path / "absent.sqlite")


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "use",
    [
        lambda p: schema.open_database(p, create=False),
        lambda p: schema.open_database(p, create=True),
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


def test_a_store_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "store.sqlite").mkdir()
    with pytest.raises(InputError, match=r"store.sqlite cannot be opened: unable to open"):
        store.Store(tmp_path / "store.sqlite")


def test_a_store_that_may_only_be_read_is_refused_at_once(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    store.Store(path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        schema.sqlite3, "connect", lambda p, **k: connect(f"file:{p}?mode=ro", uri=True, **k)
    )
    with pytest.raises(InputError, match=r"store.sqlite cannot be written to: .*readonly"):
        store.Store(path)


def test_an_empty_file_is_not_made_into_a_store_by_looking(tmp_path):
    path = tmp_path / "truth.txt"
    path.touch()
    with pytest.raises(InputError, match="not a benchmark store"):
        status(path)
    assert path.stat().st_size == 0
