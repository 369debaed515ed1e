"""Every result knows the commit it was computed with, also where there is no repository."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dcem.benchmark.machine import commit, machine_versions

ROOT = Path(__file__).parents[2]


def git(*arguments, cwd):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    told = subprocess.run(
        ["git", *who, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository with what decides the commit, and nothing else."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    root = tmp_path / "checkout"
    folder = root / "src" / "dcem" / "benchmark"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / ".gitattributes", root)
    shutil.copy(ROOT / "src" / "dcem" / "benchmark" / "commit.txt", folder)
    git("init", "-q", cwd=root)
    git("add", ".", cwd=root)
    git("commit", "-qm", "one", cwd=root)
    return root


def test_a_checkout_says_its_commit_and_whether_it_was_changed(checkout):
    here = git("rev-parse", "--short", "HEAD", cwd=checkout)
    assert commit(checkout / "src" / "dcem") == here
    (checkout / ".gitattributes").write_text("")
    assert commit(checkout / "src" / "dcem") == f"{here}-dirty"


def test_an_archive_says_its_commit(checkout, tmp_path):
    git("archive", "-o", str(tmp_path / "a.tar"), "HEAD", cwd=checkout)
    shutil.unpack_archive(tmp_path / "a.tar", tmp_path / "unpacked")
    here = git("rev-parse", "--short", "HEAD", cwd=checkout)
    assert commit(tmp_path / "unpacked" / "src" / "dcem") == here


def test_an_installed_package_claims_no_commit(checkout):
    """Not that of the repository in which its environment happens to lie, nor a placeholder."""
    installed = checkout / ".venv" / "lib" / "site-packages" / "dcem"
    shutil.copytree(checkout / "src" / "dcem", installed)
    assert commit(installed) is None
    (installed / "benchmark" / "commit.txt").unlink()
    assert commit(installed) is None


def test_versions_name_what_decides_a_result():
    assert {"dcem", "Python", "torch", "numpy", "scipy", "scikit-learn"} <= set(machine_versions())
