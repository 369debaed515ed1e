"""Trees as plain arrays: the common form of boosted trees and forests, checked and scored alike.

The layout is LightGBM's. A tree with L leaves has L - 1 splits; a row goes left where its feature
is at most the threshold; a child from 0 on is a split of the same tree, a negative one c is the
leaf -c - 1. Trees follow each other in the arrays. Scoring is left to LightGBM or scikit-learn
(small trees: `dcem.learners.boost`), which get what is made from arrays that were checked before:
nothing of a foreign file reaches them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dcem.learners.learner import LearnerBase
from dcem.learners.preprocess import Preprocessor

# What the arrays hold, and what LightGBM calls them in its text format.
KINDS: dict[str, tuple[Any, str]] = {
    "leaves": (np.int32, "num_leaves"),
    "feature": (np.int32, "split_feature"),
    "threshold": (np.float64, "threshold"),
    "decision": (np.int8, "decision_type"),
    "left": (np.int32, "left_child"),
    "right": (np.int32, "right_child"),
    "value": (np.float64, "leaf_value"),
}
SPLITS = ("feature", "threshold", "decision", "left", "right")  # one number for each split
# Which way a missing value goes. LightGBM's codes: 2 left by default, 8 NaN counts as missing.
DECISIONS = (0, 2, 8, 10)


@dataclass(frozen=True)
class Trees:
    """T trees whose values add up.

    Attributes
    ----------
    leaves
        Leaves of each tree `[T]`.
    feature, threshold, decision, left, right
        Of each split, tree after tree.
    value
        Of each leaf, tree after tree.
    """

    leaves: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    decision: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    def check(self, n_features: int) -> None:
        """ValueError unless these are trees over so many features."""
        for name, (kind, _) in KINDS.items():
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype != kind:
                raise ValueError(f"{name} of the trees is not an array of {kind}")
        splits = int(self.leaves.sum(dtype=np.int64)) - len(self.leaves)
        if (self.leaves < 1).any() or len(self.value) != splits + len(self.leaves):
            raise ValueError("the leaves of the trees do not add up")
        if {len(getattr(self, name)) for name in SPLITS} != {splits}:
            raise ValueError("the splits of the trees do not add up")
        if splits and not 0 <= self.feature.min() <= self.feature.max() < n_features:
            raise ValueError("a tree uses a feature that does not exist")
        if not np.isin(self.decision, DECISIONS).all() or not (
            np.isfinite(self.value).all() and not np.isnan(self.threshold).any()
        ):
            raise ValueError("a tree contains an invalid number or direction")
        tree = np.repeat(np.arange(len(self.leaves)), self.leaves - 1)  # of each split
        number, n_leaves = np.arange(splits) - np.array(self.starts)[tree], self.leaves[tree]
        children = np.stack([self.left, self.right])  # [2, splits]
        exist = (children >= -n_leaves) & (children < n_leaves - 1)
        if not exist.all() or ((children >= 0) & (children <= number)).any():
            raise ValueError("a tree has invalid children")
        # every split but the root and every leaf is a child once, and comes after its parent
        offset = np.cumsum(2 * self.leaves) - self.leaves
        if np.bincount((offset[tree] + children).ravel()).max(initial=0) > 1:
            raise ValueError("a node of a tree has two parents")

    @cached_property
    def starts(self) -> list[int]:
        """The first split of each tree."""
        return (np.cumsum(self.leaves) - self.leaves - np.arange(len(self.leaves))).tolist()

    def text(self, n_features: int) -> str:
        """LightGBM's own text format, without counts and ranges of the training rows."""
        names = " ".join(f"x{i}" for i in range(n_features))
        lines = [
            "tree",
            "version=v4",
            "num_class=1",
            "num_tree_per_iteration=1",
            "label_index=0",
            f"max_feature_idx={n_features - 1}",
            f"feature_names={names}",
            f"feature_infos={' '.join(['[-inf:inf]'] * n_features)}",
            "",
        ]
        leaf = 0
        for number, (first, n_leaves) in enumerate(
            zip(self.starts, self.leaves.tolist(), strict=True)
        ):
            own = slice(first, first + n_leaves - 1)
            lines += [f"Tree={number}", f"num_leaves={n_leaves}", "num_cat=0"]
            written = {name: getattr(self, name)[own] for name in SPLITS if n_leaves > 1}
            written["value"] = self.value[leaf : leaf + n_leaves]
            for name, values in written.items():
                lines.append(f"{KINDS[name][1]}={' '.join(map(repr, values.tolist()))}")
            lines += ["shrinkage=1", "", ""]
            leaf += n_leaves
        return "\n".join([*lines, "end of trees", ""])

    def plus(self, number: float) -> Trees:
        """The same with a number added to their sum."""
        first = np.arange(len(self.value)) < self.leaves[0]
        return replace(self, value=self.value + number * first)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Trees:
        """Checked trees."""
        made = cls(**{field.name: arrays[field.name] for field in fields(cls)})
        made.check(n_features)
        return made

    @classmethod
    def from_text(cls, text: str) -> Trees:
        """From what LightGBM writes of a model without categories."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in KINDS}
        names = {word: name for name, (_, word) in KINDS.items()}
        for line in text.partition("end of trees")[0].splitlines():
            key, _, values = line.partition("=")
            if key in names and values:
                found[names[key]].append(np.array(values.split(), dtype=np.float64))
        return cls._joined(found)

    @classmethod
    def from_sklearn(cls, trees: Sequence[Any], values: Sequence[np.ndarray]) -> Trees:
        """From scikit-learn's trees, and what each of their nodes says `[nodes]`."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in KINDS}
        for tree, value in zip(trees, values, strict=True):
            inner = tree.children_left >= 0
            # splits and leaves numbered apart, in the order of the nodes
            place = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner))
            for name, part in {
                "leaves": np.array([(~inner).sum()]),
                "feature": tree.feature[inner],
                "threshold": tree.threshold[inner],
                "decision": np.zeros(inner.sum()),
                "left": place[tree.children_left[inner]],
                "right": place[tree.children_right[inner]],
                "value": value[~inner],
            }.items():
                found[name].append(part)
        return cls._joined(found)

    @classmethod
    def _joined(cls, found: Mapping[str, Sequence[np.ndarray]]) -> Trees:
        return cls(
            **{
                name: np.concatenate([*parts, np.zeros(0)]).astype(KINDS[name][0])
                for name, parts in found.items()
            }
        )

    def for_sklearn(self, n_features: int) -> Iterator[Any]:
        """The inverse: scikit-learn's trees, splits first and then leaves."""
        from sklearn.tree._tree import NODE_DTYPE, Tree

        leaf = 0
        for first, n_leaves in zip(self.starts, self.leaves.tolist(), strict=True):
            n_splits = n_leaves - 1
            nodes = np.zeros(n_splits + n_leaves, NODE_DTYPE)
            splits, own = nodes[:n_splits], slice(first, first + n_splits)
            for name, child in {"left_child": self.left, "right_child": self.right}.items():
                nodes[name] = -1  # a leaf has no child
                splits[name] = np.where(child[own] >= 0, child[own], n_splits - child[own] - 1)
            splits["feature"], splits["threshold"] = self.feature[own], self.threshold[own]
            values = np.zeros((len(nodes), 1, 1))
            values[n_splits:, 0, 0] = self.value[leaf : leaf + n_leaves]
            leaf += n_leaves
            tree = Tree(n_features, np.array([1], np.intp), 1)
            state = {"max_depth": n_leaves, "node_count": len(nodes)}
            tree.__setstate__(state | {"nodes": nodes, "values": values})
            yield tree


class Scorer:
    """The sums of trees, by LightGBM."""

    def __init__(self, trees: Trees, n_features: int):
        import lightgbm

        self._booster = lightgbm.Booster(model_str=trees.text(n_features))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The sum over all trees `[n]`."""
        if len(X) == 0:
            return np.zeros(0)
        return np.asarray(self._booster.predict(X, raw_score=True, num_threads=1))


class TreeLearner(LearnerBase):
    """A learner whose trees add up to what it predicts."""

    trees: Trees
    scorer: ClassVar[Any] = Scorer

    @property
    def _n_inputs(self) -> int:
        """Columns that the trees read."""
        return self.n_features

    def _set(self, trees: Trees) -> None:
        trees.check(self._n_inputs)
        self.trees, self._scorer = trees, self.scorer(trees, self._n_inputs)

    def _say(self, value: float) -> None:
        self._set(Trees.from_text(f"num_leaves=1\nleaf_value={value!r}"))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set(self.trees)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return self.trees.arrays() | self.preprocessor.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = cls()
        made.n_features = n_features
        made.preprocessor = Preprocessor.from_arrays(arrays, n_features)
        made._set(Trees.from_arrays(arrays, made._n_inputs))
        return made
