"""Fitted models on disk: numbers as safetensors, the rest as JSON, nothing that runs.

A folder holds `model.safetensors` (weights, trees, preprocessing, clusters of tested rows),
`model.json` (what they mean, with hashes of both) and `MODEL_CARD.md`, which is for people and is
not read back. What prediction needs is saved, and no individual's row: pseudo-labels and testing
probabilities of training rows stay behind. So do models that are not ours: a scikit-learn
propensity model is replaced by a stand-in that says so, and a network from an own factory needs the
factory again.

A model is replaced in one step, and a reader who meets that step reads again: whoever loads sees
the old model or the new one, never neither. Hashes tell damage; they do not tell who wrote a file,
so every field is checked after them.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load
from safetensors.numpy import save as to_bytes
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dcem import __version__
from dcem.files import LARGEST, read_bytes, real_place, whole_folder
from dcem.hooks import above
from dcem.saving.plain_data import Packer, Unpacker, estimator_class
from dcem.table.messages import InputError, notice

if TYPE_CHECKING:
    from torch import nn

    from dcem.methods.base import SelectiveClassifier

FORMAT = "dcem-model"
FORMAT_VERSION = 2
TENSORS, DESCRIPTION = "model.safetensors", "model.json"
TABLE = "table."  # before the names of arrays that are not the model's
CARD, PAGE = "MODEL_CARD.md", "MODEL_CARD.html"
LONGEST = {DESCRIPTION: 1 << 28, TENSORS: LARGEST}  # bytes of a file that is read
TRIES = 50  # readings of a folder that is replaced again and again


class ModelFileError(InputError):
    """A saved model that cannot be read as what was saved; or a model that cannot be saved."""


class LeftOut(BaseEstimator):
    """Stands where a model was that is not saved; says so when it is needed."""

    classes_ = np.array([0, 1])

    def __init__(self, description: str = ""):
        self.description = description

    def fit(self, X: Any, y: Any) -> LeftOut:
        """There is nothing to fit."""
        raise InputError(
            f"The model {self.description} was not saved with this model. To fit again, "
            "give one: set_params(propensity=...)."
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Not a number, with a warning."""
        notice(
            f"testing_probability is missing, because the propensity model {self.description} was "
            "not saved with this model. Distances are not affected."
        )
        return np.full((len(X), 2), np.nan)


def require_place(folder: str | Path) -> bool:
    """Refuse a folder that holds something other than a saved model of ours; whether it holds one.

    So a save replaces a model, and nothing else is ever lost by it.
    """
    folder = Path(folder)
    if real_place(folder) == Path.cwd():
        raise ModelFileError(
            f"{folder} is the current folder, which a model would replace. Name another one."
        )
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not _is_model(folder):
        raise ModelFileError(
            f"{folder} exists and holds something other than a saved model. Name a new folder."
        )
    return True


def save(
    estimator: SelectiveClassifier,
    folder: str | Path,
    *,
    table: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
    cards: Mapping[str, str] | None = None,
) -> None:
    """Write a fitted model to `folder`, whole or not at all; an older model there is replaced.

    Parameters
    ----------
    table
        How the raw table becomes features, as JSON knows it: `SavedModel.table`. No part of the
        model itself.
    arrays
        What goes with `table` and is not JSON: `SavedModel.table_arrays`.
    cards
        What people read: the text of each file, `CARD` and `PAGE`. Default: a card without results.
    """
    check_is_fitted(estimator)
    folder = Path(folder)
    require_place(folder)
    packer = Packer()
    try:
        model = packer.estimator(estimator)
    except TypeError as error:
        raise ModelFileError(f"{error}.") from None
    description: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "dcem_version": __version__,
        "model": model,
    }
    if table is not None:
        description["table"] = dict(table)
    with whole_folder(folder) as temporary:
        more = {f"{TABLE}{name}": array for name, array in (arrays or {}).items()}
        tensors = to_bytes(packer.arrays | more)
        (temporary / TENSORS).write_bytes(tensors)
        description["tensors_sha256"] = sha256(tensors).hexdigest()
        description["sha256"] = _content_hash(description)
        text = json.dumps(description, indent=1, allow_nan=False)
        (temporary / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        if cards is None:
            cards = {CARD: above("to_markdown")(above("fitted_document")(estimator))}
        for name, card in cards.items():
            (temporary / name).write_text(card, encoding="utf-8")


def load_model(
    folder: str | Path,
    *,
    network: Callable[[int], nn.Module] | None = None,
    expected: type[SelectiveClassifier] | None = None,
) -> Any:
    """The model that `save` wrote to `folder`; it predicts exactly as the one that was saved.

    Parameters
    ----------
    network
        The module factory of a model that was fitted with one; code is not saved.
    expected
        The class the model must be of. One that is not in the registry is loaded by itself:
        `MyClassifier.load(folder)`.
    """
    return SavedModel.read(folder).estimator(network, expected)


def _try(estimator: Any) -> None:
    """Refuse a model that cannot score a row: two are, one of them made of gaps."""
    fitted = estimator.preprocessor_
    rows = np.stack([fitted.mean, fitted.mean])
    if not fitted.identity:
        rows[1] = np.nan
    standard = estimator.standardized(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not estimator.needs_group:
            scores = estimator.risks(rows, standard)
        elif hasattr(estimator, "encoder_"):
            scores = standard
        else:
            scores = estimator.member_scores(rows, np.repeat(estimator.group_names_[:1], 2))
        estimator.support_.of(standard, estimator.testing_model)
    if not np.isfinite(scores).all():
        raise ValueError("its scores are not numbers")


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model of ours, damaged or not, and nothing else.

    Others call their files `model.safetensors` and `model.json` too.
    """
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {
        TENSORS,
        DESCRIPTION,
        CARD,
        PAGE,
    }:
        return False
    try:
        return f'"{FORMAT}"'.encode() in read_bytes(folder / DESCRIPTION, LONGEST[DESCRIPTION])
    except OSError:
        return False


# -- what is read -----------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedModel:
    """The description and the arrays of one and the same model, read once, hashes compared."""

    folder: Path
    description: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: str | Path) -> SavedModel:
        """What `save` wrote to a folder."""
        folder = Path(folder)
        for attempt in range(TRIES):
            before = _identity(folder)
            try:
                description = _read_description(folder)
                return cls(folder, description, _read_arrays(folder, description))
            except ModelFileError:
                # Replaced between two files? Then there is a new whole one to read.
                if attempt + 1 == TRIES or _identity(folder) == before:
                    raise
        raise AssertionError

    @property
    def table(self) -> dict[str, Any] | None:
        """What `save` was told of the raw table, or None."""
        described = self.description.get("table")
        return described if isinstance(described, dict) else None

    @property
    def table_arrays(self) -> dict[str, np.ndarray]:
        """The arrays that go with it."""
        return {
            name.removeprefix(TABLE): np.array(array)
            for name, array in self.arrays.items()
            if name.startswith(TABLE)
        }

    def estimator(
        self,
        network: Callable[[int], nn.Module] | None = None,
        expected: type[SelectiveClassifier] | None = None,
    ) -> Any:
        """The fitted method; parameters as for `load_model`."""
        try:
            node = self.description["model"]
            cls = estimator_class(node, expected)
            if expected is not None and not issubclass(cls, expected):
                raise ModelFileError(
                    f"The model is of class {cls.__name__}, not {expected.__name__}. "
                    "Use dcem.load_model."
                )
            found = Unpacker(self.arrays, LeftOut, network).estimator(node, own=expected)
            _try(found)
        except (ModelFileError, ImportError):  # not the folder's fault
            raise
        except Exception as error:  # whatever a file can hold: it says what it is, not where
            what = str(error) or type(error).__name__
            raise ModelFileError(
                f"{self.folder} cannot be used as a model: {what[:500]}."
            ) from None
        return found


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _read_description(folder: Path) -> dict[str, Any]:
    file = folder / DESCRIPTION
    content = _content(file, f"{folder} holds no saved model")
    try:
        description = json.loads(content, parse_constant=int)  # NaN is refused
        version = description["format_version"] if description["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(f"{file} is truncated or was altered: it cannot be read.") from None
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{file} does not describe a dcem model.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{folder} has format {version}, written by dcem {description.get('dcem_version')}; "
            f"this is dcem {__version__}, which reads formats up to {FORMAT_VERSION}. Update dcem."
        )
    if description.pop("sha256", None) != _content_hash(description):
        raise ModelFileError(f"{file} was altered after it was saved: its hash does not match.")
    return dict(description)


def _read_arrays(folder: Path, description: dict[str, Any]) -> dict[str, np.ndarray]:
    file = folder / TENSORS
    content = _content(file, f"{folder} is incomplete")
    if sha256(content).hexdigest() != description.get("tensors_sha256"):
        raise ModelFileError(f"{file} is truncated or was altered: its hash does not match.")
    try:
        arrays = dict(load(content))
        if description["format_version"] == 1:
            _from_version_1(description, arrays)
    except Exception as error:  # of the reader: a file is outside input
        raise ModelFileError(f"{file} cannot be read: {error}") from None
    return arrays


def _from_version_1(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Bring a description of the first format, and its arrays, into the present one.

    Networks had a list of their own, and those of several members lay in one array.
    """
    node = {
        name: description.pop(name)
        for name in (
            "method", "class", "parameters", "fitted", "preprocessor", "support", "training_counts",
        )
    }  # fmt: skip
    for name, one in description.pop("networks").items():
        described = {"$fleet": one["architecture"]}
        node["fitted"][name] = described
        if one["list"] is not None:
            node["fitted"][name] = [described] * len(one["list"])
            parts = np.split(arrays.pop(name), np.cumsum(one["list"])[:-1])
            arrays |= {f"{name}.{i}": part for i, part in enumerate(parts)}
    description["model"] = node


def _content(file: Path, otherwise: str) -> bytes:
    try:
        return read_bytes(file, LONGEST[file.name])
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        why = "is missing" if gone else f"cannot be read ({error.strerror})"
        raise ModelFileError(f"{otherwise}: {file.name} {why}.") from None


def _content_hash(description: dict[str, Any]) -> str:
    """A hash of what a description says, however it is laid out."""
    return sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
