"""Fitted models as JSON and arrays, and back: nothing that runs, and every field checked.

`Packer` turns an estimator into values that JSON knows; arrays of models (networks, learners) go
into a dictionary of their own under the place that they have in the tree. `Unpacker` is its
inverse. It trusts nothing: kinds come from fixed lists, sizes are compared with the arrays that are
there before anything is allocated, and what does not fit raises `ValueError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from dcem import learners
from dcem.extras import extra_needed
from dcem.learners.preprocess import Preprocessor
from dcem.methods.base import SelectiveClassifier
from dcem.methods.registry import METHODS, PropensitySettings, current_name
from dcem.methods.support import Support
from dcem.table.disclosure import hide_groups
from dcem.table.encoder import Encoder

# Settings that are parameters of a method; only these are made again from a file.
SETTINGS = {cls.__name__: cls for cls in (PropensitySettings,)}
# Fitted attributes about individual rows; never written.
ROWS = {"train_rows_", "pseudo_labels_", "propensity_", "pseudo_outcome_"}
COLUMNS = {"classes_", "feature_names_in_", "coefficients_", "covariance_"}  # however many
# Fitted attributes with a place of their own in the description.
PLACED = {"preprocessor_", "support_", "training_counts_", "training_few_", "encoder_"}
ARRAYS = "bifuUO"  # kinds of arrays that a description may hold
LARGEST = 10**6  # of a number that says how large a network is
DEEPEST = 8  # estimators within estimators


class Packer:
    """Writes one estimator; `arrays` holds what is not JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def estimator(self, one: SelectiveClassifier, place: str = "") -> dict[str, Any]:
        """A fitted estimator, those inside it included."""
        for name in ("preprocessor_", "support_"):
            part = getattr(one, name)
            self._put(f"{place}{name}", part.arrays())
        counts = shown_training_counts(one)
        node = {
            "method": one.name,
            "class": type(one).__name__,
            "parameters": self._parameters(one),
            "fitted": self._fitted(one, place),
            "preprocessor": {"identity": one.preprocessor_.identity},
            "support": {"radius": float(one.support_.radius), "rate": float(one.support_.rate)},
            "training_counts": encode_value(counts.reset_index().to_dict(orient="list")),
        }
        if hasattr(one, "encoder_"):
            node["encoder"] = one.encoder_.to_plain()
        return node

    def _fitted(self, one: SelectiveClassifier, place: str) -> dict[str, Any]:
        n_rows = {len(getattr(one, "train_rows_", ())), int(one.training_counts_["rows"].sum())}
        fitted = {}
        for name, value in vars(one).items():
            if not name.endswith("_") or name.startswith("_") or name in ROWS | PLACED:
                continue
            if isinstance(value, np.ndarray) and name not in COLUMNS and n_rows & set(value.shape):
                continue  # about rows, whatever it is called
            try:
                fitted[name] = self._value(value, f"{place}{name}")
            except TypeError as error:
                raise TypeError(f"{name} cannot be saved: {error}") from None
        return fitted

    def _value(self, value: Any, place: str) -> Any:
        if isinstance(value, SelectiveClassifier):
            return {"$estimator": self.estimator(value, f"{place}.")}
        if hasattr(value, "architecture"):
            self.arrays[place] = value.flat.detach().cpu().numpy()
            return {"$fleet": value.architecture.describe()}
        if hasattr(value, "predict_logit"):
            name, arrays = learners.dump_learner(value)
            self._put(place, arrays)
            return {"$learner": name, "n_features": value.n_features, "arrays": sorted(arrays)}
        if isinstance(value, list):
            items = [self._value(item, f"{place}.{i}") for i, item in enumerate(value)]
            left_out = bool(items) and isinstance(items[0], dict) and "$left_out" in items[0]
            return items[0] if left_out else items  # of several such models one tells enough
        return encode_value(value)

    def _put(self, place: str, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            self.arrays[f"{place}.{name}"] = np.ascontiguousarray(array)

    def _parameters(self, one: SelectiveClassifier) -> dict[str, Any]:
        parameters = one.get_params(deep=False)
        if isinstance(parameters["random_state"], np.random.RandomState | np.random.Generator):
            parameters["random_state"] = None  # where a generator stands does not belong to a model
        plain = {}
        for name, value in parameters.items():
            try:
                plain[name] = encode_value(value)
            except TypeError as error:
                raise TypeError(f"{name} cannot be saved: {error}") from None
        return plain


class Unpacker:
    """Reads estimators out of a description and its arrays.

    Parameters
    ----------
    arrays
        What `Packer` put aside.
    left_out
        Makes what stands for a third-party model, from its description.
    network
        The module factory of a model that was fitted with one.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        left_out: Callable[[str], Any],
        network: Callable[[int], Any] | None = None,
    ):
        self.arrays, self.left_out, self.network = arrays, left_out, network

    def estimator(
        self, node: Any, place: str = "", own: type[Any] | None = None, depth: int = 0
    ) -> Any:
        """The estimator; `own` is a class of the user's that the registry does not know."""
        if depth > DEEPEST:
            raise ValueError("its estimators are nested too deeply")
        one = estimator_class(node, own)()
        parameters = self._parameters(_mapping(node["parameters"]), one)
        one.set_params(**parameters)
        for name, value in _mapping(node["fitted"]).items():
            if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name!r} is not the name of a fitted attribute")
            setattr(one, name, self._value(value, f"{place}{name}", depth))
        if "encoder" in node:
            one.encoder_ = Encoder.from_plain(_mapping(node["encoder"]))
        n_features = _feature_count(one.n_features_in_)
        if hasattr(one, "encoder_"):
            n_features = len(one.encoder_.feature_names)
        identity = node["preprocessor"]["identity"]
        one.preprocessor_ = Preprocessor.from_arrays(
            self._part(f"{place}preprocessor_"), n_features, identity is True
        )
        one.support_ = Support.from_arrays(
            self._part(f"{place}support_"),
            float(node["support"]["radius"]),
            float(node["support"].get("rate", 1.0)),  # earlier versions took everybody's to be so
            one.preprocessor_.n_outputs,
            len(one.group_names_),
        )
        counts = pd.DataFrame(decode_value(node["training_counts"], self.left_out))
        one.training_counts_ = counts.set_index("group")[["rows", "tested", "positive"]]
        _check_names(one)
        return one

    def _parameters(self, plain: Mapping[str, Any], one: Any) -> dict[str, Any]:
        unknown = plain.keys() - one.get_params(deep=False).keys()
        if unknown:
            raise ValueError(f"{one.name} has no parameter {min(unknown)!r}")
        parameters = {name: decode_value(value, self.left_out) for name, value in plain.items()}
        if parameters.get("network") is not None:
            parameters["network"] = self.network
        return parameters

    def _value(self, value: Any, place: str, depth: int) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [self._value(item, f"{place}.{i}", depth) for i, item in enumerate(value)]
        if isinstance(value, dict):
            if "$estimator" in value:
                return self.estimator(value["$estimator"], f"{place}.", depth=depth + 1)
            if "$fleet" in value:
                return self._fleet(_mapping(value["$fleet"]), place)
            if "$learner" in value:
                arrays = self._part(place)
                return learners.load_learner(
                    value["$learner"], arrays, _feature_count(value["n_features"])
                )
        return decode_value(value, self.left_out)

    def _fleet(self, described: Mapping[str, Any], place: str) -> Any:
        with extra_needed("a model of neural networks"):
            import torch

            from dcem.engine import Fleet

        architecture = self._architecture(described)
        flat = self.arrays[place]
        if flat.ndim != 2 or flat.shape[1] != architecture.n_parameters or not len(flat):
            raise ValueError(f"{place} does not hold the parameters of such networks")
        # Copies begin at the start of a cache line. Numbers left where the file has them need not,
        # and products of them then differ in the last bit from those of the model that was saved.
        return Fleet(architecture, torch.from_numpy(np.array(flat)).clone())

    def _architecture(self, described: Mapping[str, Any]) -> Any:
        from dcem.engine import FromModule
        from dcem.engine.architectures import rebuild

        if described["kind"] == "module":
            if self.network is None:
                raise ValueError(
                    "it has a network of its own, whose code is not saved: pass its factory, "
                    "load(folder, network=...)"
                )
            architecture = FromModule(self.network, _feature_count(described["n_inputs"]))
            if architecture.describe() != described:
                raise ValueError(
                    "the network given makes other parameters than the one that was saved: "
                    f"{architecture.describe()['parameters']} instead of {described['parameters']}"
                )
            return architecture
        for value in described.values():
            sizes = value if isinstance(value, list) else [value]
            if len(sizes) > 100 or any(isinstance(n, int) and abs(n) > LARGEST for n in sizes):
                raise ValueError("it describes a network of an impossible size")
        try:
            return rebuild(dict(described))
        except KeyError:
            raise ValueError(
                f"it holds a network of kind {described['kind']!r}, which nothing in this program "
                "has registered (dcem.engine.architectures.register)"
            ) from None

    def _part(self, place: str) -> dict[str, np.ndarray]:
        prefix = f"{place}."
        return {
            name.removeprefix(prefix): np.array(array)
            for name, array in self.arrays.items()
            if name.startswith(prefix)
        }


def estimator_class(node: Mapping[str, Any], own: type[Any] | None = None) -> Any:
    """The class of a saved estimator: one of the registry, or `own` where it has that name."""
    name = current_name(str(node["class"]))
    if own is not None and own.__name__ == name:
        return own
    method = node["method"]
    found = METHODS[method] if isinstance(method, str) and method in METHODS else None
    if found is None or found.__name__ != name:
        raise ValueError(
            f"it is of class {name}, which dcem does not know: load it with {name}.load"
        )
    return found


def _check_names(one: Any) -> None:
    """Classes, features and groups are as many as they should be, and of a kind that is used."""
    if not isinstance(one.classes_, np.ndarray) or one.classes_.shape != (2,):
        raise ValueError("it does not have two classes")
    names = getattr(one, "feature_names_in_", None)
    if names is not None and np.shape(names) != (one.n_features_in_,):
        raise ValueError("the number of feature names is not the number of features")
    if not isinstance(one.group_names_, tuple) or not all(
        isinstance(name, str) for name in one.group_names_
    ):
        raise ValueError("the names of its groups are not text")


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"it has a {type(value).__name__} where names and values should be")
    return value


def _feature_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise ValueError(f"{str(value)[:40]!r} is not a number of features")
    return value


def encode_value(value: Any) -> Any:
    """A value as JSON knows it; TypeError for what has no such form.

    Third-party models and functions are left out: of them only the description remains.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.generic):
        return encode_value(value.item())
    if isinstance(value, np.ndarray):
        return {"$array": encode_value(value.tolist()), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"$tuple": [encode_value(item) for item in value]}
    if isinstance(value, list):
        return [encode_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): encode_value(item) for name, item in value.items()}
    if type(value).__name__ in SETTINGS and is_dataclass(value):
        named = {field.name: encode_value(getattr(value, field.name)) for field in fields(value)}
        return {"$settings": type(value).__name__, "fields": named}
    if isinstance(value, BaseEstimator):
        return {"$left_out": getattr(value, "description", None) or repr(value)}
    if callable(value):
        return {"$left_out": getattr(value, "__qualname__", repr(value))}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def decode_value(value: Any, left_out: Callable[[str], Any]) -> Any:
    """The value that `encode_value` wrote; `left_out` makes what stands for a missing model."""
    if isinstance(value, list):
        return [decode_value(item, left_out) for item in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return _array(decode_value(value["$array"], left_out), str(value["dtype"]))
    if "$tuple" in value:
        return tuple(decode_value(item, left_out) for item in value["$tuple"])
    if "$settings" in value:
        named = {name: decode_value(item, left_out) for name, item in value["fields"].items()}
        return SETTINGS[value["$settings"]](**named)
    if "$left_out" in value:
        return left_out(str(value["$left_out"]))
    return {name: decode_value(item, left_out) for name, item in value.items()}


def _array(values: Any, dtype: str) -> np.ndarray:
    """An array of a kind that models have; text as long as it is, whatever the dtype says."""
    kind = np.dtype(dtype).kind if len(dtype) <= 12 else "?"
    if kind not in ARRAYS:
        raise ValueError(f"{dtype!r} is not a kind of array that a model has")
    return np.array(values) if kind == "U" else np.array(values, dtype=dtype)


def shown_training_counts(estimator: SelectiveClassifier) -> pd.DataFrame:
    """The training counts of a model that anybody may see; NaN in place of the others."""
    counts = estimator.training_counts_
    if counts.isna().to_numpy().any():  # of a model that was loaded: hidden before
        return counts
    shown = hide_groups(counts.to_dict(orient="records"), getattr(estimator, "training_few_", None))
    plain = pd.DataFrame(shown[:-1], index=counts.index)
    return plain.apply(pd.to_numeric, errors="coerce").astype(float)
