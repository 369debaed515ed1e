"""What is written down for packagers agrees with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import dcem
from dcem.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHER_NAMES = {"python_calamine": "python-calamine", "python_multipart": "python-multipart",
               "adbc_driver_postgresql": "adbc-driver-postgresql"}  # fmt: skip


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def bare(requirement: str) -> str:
    return requirement.replace(" ", "").lower()


def test_the_conda_recipe_asks_for_what_the_core_needs() -> None:
    asked = re.findall(r"^    - (.+)$", text("conda/meta.yaml").partition("  run:")[2], re.M)
    asked = {bare(one) for one in asked if ">=" in one and not one.startswith("python ")}
    needed = {bare(one) for one in PROJECT["dependencies"]}
    assert asked - {bare("matplotlib-base >=3.9")} == needed
    version = re.search(r"regex_pattern='([^']+)'", text("conda/meta.yaml"))[1]
    assert re.search(version, text("src/dcem/__init__.py"))[1] == dcem.__version__


def test_the_image_takes_extras_and_files_that_exist() -> None:
    image = text("Dockerfile")
    (extras,) = re.findall(r"'/src\[([\w,]+)\]'", image)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    for line in re.findall(r"^COPY (.+) \S+$", image, re.M):
        assert all((ROOT / name).exists() for name in line.split())
    assert image.index("\nUSER dcem") < image.index("\nENTRYPOINT")


def test_every_library_is_in_the_extra_that_is_named_for_it() -> None:
    for library, extra in EXTRAS.items():
        name = OTHER_NAMES.get(library, library)
        brought = PROJECT["optional-dependencies"][extra]
        assert any(re.match(rf"{name}\b", one) for one in brought), (library, extra)


def test_one_version_and_the_pythons_that_are_promised() -> None:
    assert f"version: {dcem.__version__}\n" in text("CITATION.cff")
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    assert {"3.11", "3.12", "3.13"} <= named
    for version in named:
        assert f'"{version}"' in text(".github/workflows/check.yml")
