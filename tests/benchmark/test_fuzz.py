"""Damaged benchmark files: a message that names the file, or a plan; never a traceback."""

import warnings

import numpy as np
import pytest

from dcem.benchmark.cells import expand
from dcem.benchmark.toml_file import load_benchmark
from dcem.table.messages import InputError

# An entry may hold any of these, whatever it should hold; as TOML.
ODD = (
    *(
        '""',
        '"x"',
        '"1/0"',
        '"1/3"',
        '"all"',
        '"nan"',
        '"é\\u0000"',
        "0",
        "-1",
        "7",
        "10000000000000",
    ),
    *("1e308", "-0.0", "nan", "inf", "true", "false", "[]", "[[]]", "[1, 'a']", "[true]", "{}"),
    *("{a = 1}", "[{a = 1}]", "1979-05-27", "07:32:00", '"../x.csv"', "[nan, 1]", "[1, [2, 3]]"),
)
TASK = ("kind", "k", "q_t", "q_y", "phase", "stream", "preset", "seed", "n_train", "prevalence")
TASK += ("group_share", "cohort", "path", "beta", "variance", "oddity")
METHOD = ("name", "published", "params", "grid", "label", "seed", "oddity")
TOP = ("name", "about", "metrics", "tasks", "methods", "oddity")
SOUND = {
    "top": {"name": '"mine"', "metrics": '["auc"]'},
    "task": {"k": "[0.5, 1]", "phase": "0", "stream": '"independent"', "seed": "1"},
    "method": {"name": '["y-obs", "dcem"]', "params": "{steps = 5}"},
}


def written(rng):
    """A sound file with one to three entries replaced or added."""
    parts = {name: dict(entries) for name, entries in SOUND.items()}
    for _ in range(rng.integers(1, 4)):
        part, keys = list(zip(parts, (TOP, TASK, METHOD), strict=True))[rng.integers(3)]
        parts[part][str(rng.choice(keys))] = str(rng.choice(ODD))
    top, task, method = (
        "\n".join(f"{key} = {value}" for key, value in part.items()) for part in parts.values()
    )
    text = f"{top}\n[[tasks]]\n{task}\n[[methods]]\n{method}\n"
    if rng.random() < 0.2:  # cut off, or bytes that are not text
        place = int(rng.integers(len(text)))
        return text.encode()[:place] + (b"\xff\xfe" if rng.random() < 0.5 else b"")
    return text.encode()


@pytest.mark.parametrize("n", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_damaged_file_is_named_or_planned(tmp_path, n):
    rng, path, answered, planned = np.random.default_rng(0), tmp_path / "mine.toml", 0, 0
    for _ in range(n):
        path.write_bytes(written(rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                planned += bool(expand(load_benchmark(path))[0])
            except (InputError, FileNotFoundError):  # a task may name a file that is not there
                answered += 1
            except Exception as error:
                raise AssertionError(path.read_bytes().decode(errors="replace")) from error
    assert answered > 0.3 * n
    assert planned > 0.01 * n
