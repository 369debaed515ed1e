"""Old and new code beside each other on one machine: every fit has to agree to 1e-9.

    python tests/golden/beside_old_code.py OLD [-k EXPRESSION]

`OLD` is a commit or a wheel. Its package is unpacked into a folder of its own, with the `names.py`
of that commit (of a wheel, today's), and both run the fits of `methods/test_fits.py` and
`test_default.py` in processes of their own. Not part of the tests: it takes two minutes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from keeping import compared

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path("tests") / "golden"
FITS = (GOLDEN / "methods" / "test_fits.py", GOLDEN / "test_default.py")
TOLERANCE = 1e-9
IN_SINGLE_PRECISION = ("long tables", 1e-5)  # seven digits, of which 30 steps leave five


def unpacked(old: str, folder: Path) -> None:
    """Put the old package, and what runs it, into a folder."""
    shutil.copytree(ROOT / GOLDEN, folder / GOLDEN)
    shutil.copy(ROOT / "pyproject.toml", folder)
    if old.endswith(".whl"):
        zipfile.ZipFile(old).extractall(folder / "src")
        return
    git = ["git", "-C", str(ROOT)]
    archive = subprocess.run([*git, "archive", old, "src"], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    names = subprocess.run([*git, "show", f"{old}:{GOLDEN}/names.py"], capture_output=True)
    if names.returncode == 0:
        (folder / GOLDEN / "names.py").write_bytes(names.stdout)


def values(folder: Path, out: Path, expression: str) -> dict[str, dict[str, object]]:
    """Case -> its values by the package in a folder."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", expression]
    subprocess.run(
        [*command, "--values-to", str(out), *map(str, FITS)], cwd=folder, env=environment
    )
    return {
        case: record["values"]
        for path in sorted(out.glob("*.json"))
        for case, record in json.loads(path.read_text(encoding="utf-8")).items()
    }


def main() -> int:
    """Compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="commit or wheel")
    parser.add_argument("-k", default="", help="only tests that match")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpacked(given.old, folder / "old")
        before = values(folder / "old", folder / "before", given.k)
        after = values(ROOT, folder / "after", given.k)
    differing = sorted(set(before) ^ set(after))
    for case in sorted(set(before) & set(after)):
        kind, single = IN_SINGLE_PRECISION
        tolerance = single if case.startswith(kind) else TOLERANCE
        if differences := compared(before[case], after[case], tolerance):
            print(f"{case}: {'; '.join(differences)}")
            differing.append(case)
    print(f"{len(after)} cases, {len(differing)} differ or are on one side only: {differing}")
    return int(bool(differing) or not after)


if __name__ == "__main__":
    sys.exit(main())
