"""Fitted models on disk: numbers as safetensors, the rest as JSON, nothing that runs.

A folder holds `model.safetensors` (weights, preprocessing, clusters of tested rows), `model.json`
(what they mean, with hashes of both) and `MODEL_CARD.md`, which is for people and is not read back.
What prediction needs is saved, and no individual's row: pseudo-labels and testing probabilities of
training rows stay behind. So do models that are not ours: a scikit-learn propensity model is
replaced by a stand-in that says so, and a network from an own factory needs the factory again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dcem import __version__
from dcem.engine import Fleet, FromModule
from dcem.engine.architectures import describe, rebuild
from dcem.engine.fleet import Architecture
from dcem.methods.preprocess import Preprocessor
from dcem.methods.support import Support
from dcem.saving.card import model_card, without_small_cells
from dcem.saving.plain_data import from_plain, to_plain
from dcem.table.checks import InputError, notice

if TYPE_CHECKING:
    from dcem.methods.base import NetworkClassifier

FORMAT = "dcem-model"
FORMAT_VERSION = 1
TENSORS, DESCRIPTION, CARD = "model.safetensors", "model.json", "MODEL_CARD.md"
# Fitted attributes about individual rows; never written.
ROWS = {"train_rows_", "pseudo_labels_", "propensity_"}
NAMES = {"classes_", "feature_names_in_"}
# Fitted attributes with a place of their own in the description.
PLACED = {"preprocessor_", "support_", "training_counts_"}


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
            f"The propensity model {self.description} was not saved with this model. To fit again, "
            "give one: set_params(propensity=...)."
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Not a number, with a warning."""
        notice(
            f"testing_probability is missing: the propensity model {self.description} is not part "
            "of a saved model. Distances are as they were."
        )
        return np.full((len(X), 2), np.nan)


def require_place(folder: str | Path) -> bool:
    """Refuse a folder that holds something other than a saved model of ours; whether it holds one.

    So a save replaces a model, and nothing else is ever lost by it.
    """
    folder = Path(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not _is_model(folder):
        raise ModelFileError(
            f"{folder} exists and holds something other than a saved model. Choose a new folder."
        )
    return True


def save(
    estimator: NetworkClassifier,
    folder: str | Path,
    *,
    table: Mapping[str, Any] | None = None,
    about_table: str = "",
) -> None:
    """Write a fitted model to `folder`, whole or not at all; an older model there is replaced.

    Parameters
    ----------
    table
        How the raw table becomes features, as JSON knows it; `read_table_description` gives it
        back. No part of the model itself.
    about_table
        The same for people, in Markdown, a section of the model card.
    """
    check_is_fitted(estimator)
    folder = Path(folder)
    require_place(folder)
    tensors, networks, fitted = _fitted(estimator)
    tensors |= _arrays("preprocessor_", estimator.preprocessor_, "median mean scale indicators")
    tensors |= _arrays("support_", estimator.support_, "centers group_shares")
    counts = without_small_cells(estimator.training_counts_)
    description: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "dcem_version": __version__,
        "method": estimator.name,
        "class": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "fitted": fitted,
        "networks": networks,
        "preprocessor": {"identity": estimator.preprocessor_.identity},
        "support": {"radius": float(estimator.support_.radius)},
        "training_counts": to_plain(counts.reset_index().to_dict(orient="list")),
    }
    if table is not None:
        description["table"] = dict(table)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        save_file(tensors, temporary / TENSORS)
        description["tensors_sha256"] = _file_hash(temporary / TENSORS)
        description["sha256"] = _content_hash(description)
        text = json.dumps(description, indent=1, allow_nan=False)
        (temporary / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        # safetensors writes for the owner alone, whatever the umask says; others may need it too.
        shutil.copymode(temporary / DESCRIPTION, temporary / TENSORS)
        card = model_card(estimator, counts, about_table)
        (temporary / CARD).write_text(card, encoding="utf-8")
        _put(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load_model(
    folder: str | Path,
    *,
    network: Callable[[int], nn.Module] | None = None,
    expected: type[NetworkClassifier] | None = None,
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
    folder = Path(folder)
    description = _read_description(folder)
    tensors = _read_tensors(folder, description)
    estimator = _class_of(description, expected)()
    parameters = {
        name: from_plain(value, LeftOut) for name, value in description["parameters"].items()
    }
    if isinstance(parameters.get("network"), LeftOut):
        parameters["network"] = network
    estimator.set_params(**parameters)
    for name, value in description["fitted"].items():
        setattr(estimator, name, from_plain(value, LeftOut))
    for name, one in description["networks"].items():
        fleet = Fleet(_architecture(one["architecture"], network, folder), tensors[name])
        if one["list"] is None:
            setattr(estimator, name, fleet)
        else:
            parts = fleet.flat.split(one["list"])
            setattr(estimator, name, [Fleet(fleet.architecture, part.clone()) for part in parts])
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    estimator.preprocessor_ = Preprocessor(
        arrays["preprocessor_.median"],
        arrays["preprocessor_.mean"],
        arrays["preprocessor_.scale"],
        arrays["preprocessor_.indicators"],
        description["preprocessor"]["identity"],
    )
    estimator.support_ = Support(
        arrays["support_.centers"],
        description["support"]["radius"],
        arrays["support_.group_shares"],
    )
    counts = pd.DataFrame(from_plain(description["training_counts"], LeftOut))
    estimator.training_counts_ = counts.set_index("group")
    return estimator


def read_table_description(folder: str | Path) -> dict[str, Any] | None:
    """What `save` was told of the raw table, or None; checked for damage as the rest is."""
    described = _read_description(Path(folder)).get("table")
    return None if described is None else dict(described)


# -- what is written --------------------------------------------------------------------------


def _fitted(
    estimator: NetworkClassifier,
) -> tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]:
    """Fitted attributes by kind: tensors of networks, their description, and plain values."""
    tensors, networks, plain = {}, {}, {}
    n_rows = {len(getattr(estimator, "train_rows_", ())), estimator.training_counts_["rows"].sum()}
    for name, value in vars(estimator).items():
        if not name.endswith("_") or name.startswith("_") or name in ROWS | PLACED:
            continue
        if isinstance(value, np.ndarray) and name not in NAMES and n_rows & set(value.shape):
            continue  # about rows, whatever it is called
        fleets = value if isinstance(value, list) else [value]
        if fleets and all(isinstance(one, Fleet) for one in fleets):
            tensors[name] = torch.cat([one.flat for one in fleets]).cpu().contiguous()
            try:
                architecture = describe(fleets[0].architecture)
            except TypeError as error:
                raise ModelFileError(f"{name} cannot be saved: {error}") from None
            sizes = [len(one) for one in fleets] if isinstance(value, list) else None
            networks[name] = {"architecture": architecture, "list": sizes}
        else:
            if isinstance(value, list) and value and isinstance(value[0], BaseEstimator):
                value = value[0]
            plain[name] = _plain(name, value)
    return tensors, networks, plain


def _parameters(estimator: NetworkClassifier) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    if isinstance(parameters["random_state"], np.random.RandomState | np.random.Generator):
        parameters["random_state"] = None  # where a generator stands is no part of a model
    return {name: _plain(name, value) for name, value in parameters.items()}


def _plain(name: str, value: Any) -> Any:
    try:
        return to_plain(value)
    except TypeError as error:
        raise ModelFileError(f"{name} cannot be saved: {error}") from None


def _arrays(prefix: str, holder: object, names: str) -> dict[str, Tensor]:
    return {
        f"{prefix}.{name}": torch.from_numpy(np.ascontiguousarray(getattr(holder, name)))
        for name in names.split()
    }


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model of ours, damaged or not, and nothing else.

    Others call their files `model.safetensors` and `model.json` too.
    """
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {
        TENSORS,
        DESCRIPTION,
        CARD,
    }:
        return False
    file = folder / DESCRIPTION
    return file.is_file() and f'"{FORMAT}"'.encode() in file.read_bytes()


def _put(temporary: Path, folder: Path) -> None:
    """Give the finished folder its name; the model that had it before goes last."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        os.rename(folder, old)
    os.rename(temporary, folder)
    shutil.rmtree(old, ignore_errors=True)


# -- what is read -----------------------------------------------------------------------------


def _read_description(folder: Path) -> dict[str, Any]:
    file = folder / DESCRIPTION
    if not folder.is_dir() or not file.is_file():
        raise ModelFileError(f"{folder} holds no saved model: there is no {DESCRIPTION} in it.")
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
        version = description["format_version"] if description["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        raise ModelFileError(f"{file} is truncated or was altered: it cannot be read.") from None
    if not isinstance(version, int):
        raise ModelFileError(f"{file} does not describe a model of dcem.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{folder} has format {version}, written by dcem {description.get('dcem_version')}; "
            f"this is dcem {__version__}, which reads formats up to {FORMAT_VERSION}. Update dcem."
        )
    if description.pop("sha256", None) != _content_hash(description):
        raise ModelFileError(f"{file} was altered after it was saved: its hash does not match.")
    return dict(description)


def _read_tensors(folder: Path, description: dict[str, Any]) -> dict[str, Tensor]:
    file = folder / TENSORS
    if not file.is_file():
        raise ModelFileError(f"{folder} is incomplete: {TENSORS} is missing.")
    if _file_hash(file) != description["tensors_sha256"]:
        raise ModelFileError(f"{file} is truncated or was altered: its hash does not match.")
    try:
        # Copies begin at the start of a cache line. Numbers left where the file has them need not,
        # and products of them then differ in the last bit from those of the model that was saved.
        return {name: tensor.clone() for name, tensor in load_file(file).items()}
    except SafetensorError as error:
        raise ModelFileError(f"{file} cannot be read: {error}") from None


def _class_of(
    description: dict[str, Any], expected: type[NetworkClassifier] | None
) -> type[NetworkClassifier]:
    from dcem.methods.registry import METHODS

    name = description["class"]
    if expected is not None and expected.__name__ == name:
        return expected
    found = METHODS.get(description["method"])
    if found is None or found.__name__ != name:
        raise ModelFileError(
            f"The model is of class {name}, which dcem does not know. Load it with {name}.load."
        )
    if expected is not None and not issubclass(found, expected):
        raise ModelFileError(
            f"The model is of class {name}, not {expected.__name__}. Use dcem.load_model."
        )
    return found


def _architecture(
    description: dict[str, Any], network: Callable[[int], nn.Module] | None, folder: Path
) -> Architecture:
    if description["kind"] != "module":
        try:
            return rebuild(description)
        except KeyError:
            raise ModelFileError(
                f"{folder} holds a network of kind {description['kind']!r}, which nothing in this "
                "program has registered (dcem.engine.architectures.register)."
            ) from None
    if network is None:
        raise ModelFileError(
            f"{folder} holds a model with its own network, whose code is not saved: "
            "pass its factory, load(folder, network=...)."
        )
    architecture = FromModule(network, description["n_inputs"])
    if architecture.describe() != description:
        raise ModelFileError(
            "The network given makes other parameters than the one that was saved: "
            f"{architecture.describe()['parameters']} instead of {description['parameters']}."
        )
    return architecture


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _content_hash(description: dict[str, Any]) -> str:
    """A hash of what a description says, however it is laid out."""
    return sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
