"""Folders whose hashes are right and whose fields are not: refused with a message, every one."""

import json
import resource
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import dcem
from dcem import methods
from dcem.saving import ModelFileError, load_model
from dcem.saving.folder import _content_hash

VERSION_1 = Path(__file__).parent / "version_1"
# What a field may be replaced with, whatever it was.
WRONG: list[Any] = [
    None,
    -1,
    0,
    10**12,
    1e308,
    "x",
    "../../etc/passwd",
    [],
    {},
    [[[]]],
    {"$array": [1], "dtype": "V9000000000"},
    {"$array": [[1, 2], [3]], "dtype": "<f8"},
    {"$float": "word"},
    {"$settings": "os", "fields": {}},
    {"$tuple": 3},
    {"$fleet": {"kind": "mlp", "n_inputs": 10**6, "hidden": [10**6], "n_outputs": 2}},
    {"$fleet": {"kind": "corrected-outcome", "n_groups": 10**9}},
    {"$learner": "boost", "n_features": 2, "arrays": []},
    {"$estimator": {}},
    {"$left_out": "a model"},
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One saved model of each sort, and rows to score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    X[::9, 1] = np.nan
    y = np.where(rng.random(150) < 0.7, X[:, 0] > 0, np.nan)
    group = np.array(["a", "b"])[rng.integers(0, 2, 150)]
    place, small = tmp_path_factory.mktemp("models"), {"hidden": (3,), "steps": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, params in {
            "dcem": {**small, "max_iter": 2, "n_members": 2},
            "dragonnet": small,
            "ipw": {"learner": "boost"},
            "tested-only": {"learner": "forest"},
            "tested-only-plus-group": {"learner": "linear"},
        }.items():
            model = methods.make(name, random_state=0, **params)
            model.fit(X, y, sensitive_features=group).save(place / name)
    return place, X


NAMES = ["dcem", "dragonnet", "ipw", "tested-only", "tested-only-plus-group"]


def rewrite(folder: Path, to: Path, description: Any, arrays: dict[str, np.ndarray]) -> Path:
    """The folder with other content and right hashes."""
    to.mkdir()
    save_file(arrays, to / "model.safetensors")
    description = dict(description)
    description.pop("sha256", None)
    tensors = (to / "model.safetensors").read_bytes()
    description["tensors_sha256"] = sha256(tensors).hexdigest()
    description["sha256"] = _content_hash(description)
    (to / "model.json").write_text(json.dumps(description))
    return to


def places(node: Any, path: tuple = ()) -> Iterator[tuple]:
    """Every place in a tree of JSON."""
    if path:
        yield path
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


def put(node: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value


def refused_or_sound(folder: Path, X: np.ndarray) -> bool:
    """Whether it was refused; what is not must score rows, and nothing else may be raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load_model(folder)
        except ModelFileError:
            return True
        group = {"sensitive_features": ["a"] * len(X)} if model.needs_group else {}
        try:
            score = model.predict_proba(X, **group)
        except dcem.InputError:  # such as groups of other names
            return False
        assert np.isfinite(score).all()
        return False


@pytest.fixture
def little_memory():
    """Room for what there is and 2 GB more: a large allocation fails here, not on the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", NAMES)
def test_any_field_may_be_anything(name, folders, tmp_path, little_memory, request):
    place, X = folders
    most = 60 if request.config.getoption("--slow") else 20
    whole = json.loads((place / name / "model.json").read_text())
    arrays = load_file(place / name / "model.safetensors")
    rng = np.random.default_rng(1)
    every = [path for path in places(whole["model"]) if len(path) < 6]
    refused, tried = 0, 0
    for number in rng.choice(len(every), min(len(every), most), replace=False):
        path = ("model", *every[number])
        for value in rng.choice(len(WRONG), 2, replace=False):
            description = json.loads((place / name / "model.json").read_text())
            put(description, path, WRONG[value])
            crafted = rewrite(place / name, tmp_path / f"{tried}", description, arrays)
            refused += refused_or_sound(crafted, X)
            tried += 1
    assert refused > tried / 5


@pytest.mark.parametrize("name", NAMES)
def test_any_array_may_be_anything(name, folders, tmp_path, little_memory, request):
    place, X = folders
    description = json.loads((place / name / "model.json").read_text())
    arrays = load_file(place / name / "model.safetensors")
    changes = [
        lambda a: a[:0],
        lambda a: a[:-1],
        lambda a: np.concatenate([a, a]),
        lambda a: a.astype(np.int8),
        lambda a: np.full_like(a, np.nan if a.dtype.kind == "f" else -7),
        lambda a: a.reshape(1, *a.shape),
        lambda a: (a.astype(np.float64) + 100).astype(a.dtype),
        lambda a: np.asarray(a, dtype=np.float16),
    ]
    refused, tried = 0, 0
    most = len(changes) if request.config.getoption("--slow") else 3
    rng = np.random.default_rng(2)
    for array in arrays:
        for number in rng.choice(len(changes), most, replace=False):
            other = dict(arrays)
            with np.errstate(invalid="ignore"):
                other[array] = np.ascontiguousarray(changes[number](arrays[array]))
            to = tmp_path / f"{array}{number}"
            refused += refused_or_sound(rewrite(place / name, to, description, other), X)
            tried += 1
        other = {key: value for key, value in arrays.items() if key != array}
        to = tmp_path / f"{array}-none"
        assert refused_or_sound(rewrite(place / name, to, description, other), X)
    assert refused > tried / 3


def test_estimators_within_estimators_end(folders, tmp_path):
    place, X = folders
    description = json.loads((place / "dcem" / "model.json").read_text())
    arrays = load_file(place / "dcem" / "model.safetensors")
    inner = json.loads(json.dumps(description["model"]))
    for _ in range(50):
        inner["fitted"] = {
            **inner["fitted"],
            "part_": {"$estimator": json.loads(json.dumps(inner))},
        }
        if len(json.dumps(inner)) > 10**6:
            break
    description["model"] = inner
    assert refused_or_sound(rewrite(place / "dcem", tmp_path / "deep", description, arrays), X)


@pytest.mark.parametrize("name", ["dcem", "tested-only", "tested-only-plus-group"])
def test_a_folder_of_the_version_before_is_read(name):
    """Written in the first format; what the models said then is beside them."""
    said = json.loads((VERSION_1 / "scores.json").read_text())
    rows = np.array(said["rows"], dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without their names
        model = load_model(VERSION_1 / name)
        group = {"sensitive_features": said["group"]} if model.needs_group else {}
        score = model.predict_proba(rows, **group)[:, 1]
        near = model.support(rows)
    assert np.allclose(score, said[name]["score"], rtol=0, atol=1e-12)
    assert np.allclose(near["distance"], said[name]["distance"], rtol=0, atol=1e-6)
    testing = near["testing_probability"].fillna(-1)
    assert np.allclose(testing, said[name]["testing"], rtol=0, atol=1e-6)
    assert type(model).__name__.endswith("Classifier")
