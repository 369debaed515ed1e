"""All methods by name, and what other rooms need to know of them before they are loaded.

A new method is a class and an entry here. Loading a class can take torch with it, so names and the
facts of an entry are there without any class: the audit judges methods that it does not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dcem.extras import MissingExtra, extra_needed, is_installed, is_missing
from dcem.table.messages import InputError, did_you_mean, tell_renamed

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier

WITHOUT_NETWORKS = (
    "The method ensemble works without, and methods such as tested-only take other learners, such "
    "as boost."
)


@dataclass(frozen=True)
class MethodEntry:
    """A method before it is loaded.

    Attributes
    ----------
    home
        Module (of `dcem.methods`) and class.
    kind
        What it makes of the untested: "imputed" (their zeros are labels), "noise" (labels that may
        be wrong), "found" (nobody's negatives are known: made for tables without a record of
        testing), "tested" (it learns from the tested alone), "grouped" (so too, and it is told the
        group), "weighted" (by the chance of a test), "instrument" (it learns of them from how
        deciders differ), "latent" (it fills their labels in), "inferred" (it labels them by a model
        of the tested), "selection" (it models an unrecorded cause of test and outcome), "mixed"
        (several of these together), "comparison" (not a method to choose) or "oracle" (it is told
        the truth). The audit advises by it.
    caution
        What speaks against it wherever it is used, in a clause that begins with "it": the audit
        says so, and then calls it defensible "with care" at most.
    """

    home: str
    kind: str
    caution: str = ""

    @property
    def needs_record(self) -> bool:
        """Whether it needs to know who was tested."""
        return self.kind not in ("imputed", "noise", "found")

    @property
    def needs_truth(self) -> bool:
        """Whether it is told the truth of everybody, which no user has."""
        return self.kind == "oracle"

    @property
    def class_name(self) -> str:
        """Of the class behind it."""
        return self.home.partition(":")[2]

    def load(self) -> Any:
        """The class."""
        module, _, name = self.home.partition(":")
        with extra_needed(name, WITHOUT_NETWORKS):
            return getattr(import_module(f"dcem.methods.{module}"), name)


ENTRIES: dict[str, MethodEntry] = {
    "y-obs": MethodEntry(
        "supervised:ObservedLabelsClassifier",
        "imputed",
        "it counts the untested as negative, and learns who is positive and tested",
    ),
    "y-model": MethodEntry("supervised:OracleClassifier", "oracle"),
    "group-only": MethodEntry(
        "supervised:GroupOnlyClassifier", "imputed", "it counts that group's untested as negative"
    ),
    "tested-only": MethodEntry("supervised:TestedOnlyClassifier", "tested"),
    "tested-only-plus-group": MethodEntry("supervised:TestedOnlyPlusGroupClassifier", "grouped"),
    "ipw": MethodEntry("weighting:InversePropensityClassifier", "weighted"),
    "dr-learner": MethodEntry("weighting:DoublyRobustClassifier", "weighted"),
    "instrument": MethodEntry("instrument:InstrumentClassifier", "instrument"),
    "dragonnet": MethodEntry(
        "dragonnet:DragonNetClassifier",
        "comparison",
        "its scores are not probabilities of the outcome; it is included for comparison",
    ),
    "peer-loss": MethodEntry(
        "peer_loss:PeerLossClassifier",
        "noise",
        "it assumes that every positive is missed with the same probability",
    ),
    "group-peer-loss": MethodEntry(
        "peer_loss:GroupPeerLossClassifier",
        "noise",
        "it assumes that every positive of a group is missed with the same probability",
    ),
    "truncated-lq": MethodEntry(
        "robust_losses:TruncatedLqClassifier",
        "noise",
        "it treats missing positives as random label noise",
    ),
    "gjs": MethodEntry(
        "robust_losses:GeneralizedJensenShannonClassifier",
        "noise",
        "it treats missing positives as random label noise",
    ),
    "self": MethodEntry(
        "self_ensemble:SelfEnsembleClassifier",
        "noise",
        "it treats missing positives as scattered label noise",
    ),
    "dividemix": MethodEntry(
        "dividemix:DivideMixClassifier",
        "noise",
        "it treats missing positives as a scattered minority of wrong labels",
    ),
    "sar-em": MethodEntry(
        "sar_em:SarEMClassifier",
        "found",
        "it counts tested negatives as unknown, and discards what testing has shown",
    ),
    "purple": MethodEntry(
        "purple:PurpleClassifier",
        "found",
        "it counts tested negatives as unknown, and discards what testing has shown",
    ),
    "imputation-only": MethodEntry(
        "dcem:ImputationOnlyClassifier", "latent", "it is a part of dcem, for comparison"
    ),
    "no-causal-regularization": MethodEntry(
        "dcem:NoCausalRegularizationClassifier", "latent", "it is a part of dcem, for comparison"
    ),
    "dcem": MethodEntry("dcem:DCEMClassifier", "latent"),
    "fuzzy-augmentation": MethodEntry(
        "reject_inference:FuzzyAugmentationClassifier",
        "inferred",
        "it repeats what a model of the tested says",
    ),
    "parcelling": MethodEntry(
        "reject_inference:ParcellingClassifier",
        "inferred",
        "it assumes that the untested are worse by a factor that nobody can check",
    ),
    "bias-aware-self-learning": MethodEntry(
        "reject_inference:BiasAwareSelfLearningClassifier",
        "inferred",
        "it repeats what a model of the tested is sure of",
    ),
    "heckman": MethodEntry(
        "heckman:HeckmanClassifier",
        "selection",
        "it needs a variable that affects testing and is unrelated to the outcome",
    ),
    "unmeasured-cause": MethodEntry(
        "unmeasured:UnmeasuredCauseClassifier",
        "selection",
        "it needs a known prevalence, or features that affect testing but not the outcome",
    ),
    "ensemble": MethodEntry("ensemble:SelectiveEnsembleClassifier", "mixed"),
}


def spelled(name: str) -> tuple[str, dict[str, Any]]:
    """The name of a method's entry, and the parameters that are said with it.

    A learner may stand behind a name (`tested-only:boost`), and tables of results call the models
    of `group-only` `group-0-only`, `group-1-only` and so on.
    """
    bare, _, learner = name.partition(":")
    said: dict[str, Any] = {"learner": learner} if learner else {}
    if group := re.fullmatch(r"group-(\d+)-only", bare):
        return "group-only", said | {"group": int(group[1])}
    return bare, said


def result_name(name: str, learner: str = "", group: int = 0) -> str:
    """The name of a method in tables of results, which says all that `spelled` reads."""
    bare, said = spelled(name)
    if bare == "group-only":
        bare = f"group-{said.get('group', group)}-only"
    learner = said.get("learner", learner)
    return f"{bare}:{learner}" if learner else bare


def entry_of(name: str) -> MethodEntry:
    """The entry of a method, whatever is said with its name."""
    return ENTRIES[spelled(name)[0]]


class _Classes(Mapping[str, Any]):
    """Name -> class; a class is loaded when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return entry_of(name).load()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and spelled(name)[0] in ENTRIES

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


METHODS: Mapping[str, Any] = _Classes()


def names(*, usable: bool | None = None) -> list[str]:
    """Names of the methods; with `usable=True` those that a user can run without the truth."""
    return [
        name
        for name, entry in ENTRIES.items()
        if usable is None or usable == (not entry.needs_truth)
    ]


def make(name: str, **params: Any) -> SelectiveClassifier:
    """The method of that name, with these parameters; the others keep their defaults.

    `dcem methods NAME` (or `help(METHODS[name])`) says what a method's parameters are. A learner
    may stand behind the name: `tested-only:boost` is `make("tested-only", learner="boost")`. A
    parameter that contradicts the name is refused.
    """
    if name not in METHODS:
        hint = did_you_mean(name, ENTRIES)
        raise InputError(f"Unknown method {name!r}.{hint} Known: {', '.join(ENTRIES)}.")
    for key, value in spelled(name)[1].items():
        if params.setdefault(key, value) != value:
            raise InputError(
                f"The name {name!r} and the {key} {params[key]!r} contradict each other. Give one "
                "of them."
            )
    cls = METHODS[name]
    _check_names(cls, params)
    nested = {key: value for key, value in params.items() if "__" in key}  # "propensity__C"
    method = cls(**{key: params[key] for key in params.keys() - nested})
    return method.set_params(**nested) if nested else method


# -- published runs: a lattice of switches, of which each class names its own (`as_published`) -----
# Sources: the released code and configurations where they exist, the paper's appendix D elsewhere.


@dataclass(frozen=True)
class PropensitySettings:
    """How the propensity network is trained."""

    hidden: tuple[int, ...] = (64, 64)
    steps: int = 1000
    learning_rate: float = 1e-3
    check_every: int = 1
    patience: int | None = None  # checks without a better validation loss; None: all steps
    keep: str = "last"  # or "best"


# Every method: raw features, full batches, seed 42.
COMMON: dict[str, Any] = {"preprocess": None, "batch_size": None, "random_state": 42}
# One network, all steps, last weights.
SINGLE: dict[str, Any] = {"patience": None}
RELEASED: dict[str, Any] = {"variant": "published"}
# What sepsis changes: wider networks, ten times the steps, a hundredth of the learning rate.
# `hidden_sizes` did not reach nested networks in the release: dragonnet, sar-em and the propensity
# network of dcem stayed at (64, 64).
WIDE: dict[str, Any] = {"hidden": (128, 128, 16)}
SLOW: dict[str, Any] = {"steps": 10_000, "learning_rate": 1e-5, "weight_decay": 1e-3}


def published(name: str, task: Any = "sinusoid") -> SelectiveClassifier:
    """The method with every published choice set.

    Parameters
    ----------
    name
        A name of `dcem.methods.names()`; `group-0-only` and `group-1-only` are the two models of
        `group-only`.
    task
        A task of `dcem.tasks`, or its kind. Those of sepsis have choices of their own; every other
        gets those of the simulation.
    """
    kind = task if isinstance(task, str) else getattr(task, "kind", "sinusoid")
    if name not in METHODS:
        return make(name)  # which says what there is
    choices = METHODS[name].as_published
    if not choices:
        raise InputError(f"{name} has no published run to repeat: use make({name!r}).")
    return make(name, **COMMON | choices["sinusoid"] | choices.get(kind, {}))


def with_params(method: SelectiveClassifier, params: Mapping[str, Any]) -> SelectiveClassifier:
    """The method with these parameters set, in place; a name that it does not have is explained."""
    _check_names(type(method), params)
    return method.set_params(**params) if params else method


def _check_names(cls: Any, params: Mapping[str, Any]) -> None:
    known = [one.name for one in fields(cls)]  # get_params inspects signatures: slow in bulk
    for unknown in params:
        if unknown.split("__")[0] in known:
            continue
        if unknown == "learner":
            made = "is a neural network" if cls.needs_networks else "has learners of its own"
            raise InputError(
                f"{cls.name} {made} and takes no other. Methods that do: "
                f"{', '.join(name for name in ENTRIES if takes_learners(name))}."
            )
        hint = did_you_mean(unknown, known)
        raise InputError(
            f"{cls.name} has no parameter {unknown!r}.{hint} Known: {', '.join(known)}."
        )


def works_here(name: str) -> bool:
    """Whether what a method needs is installed: torch, where it trains networks."""
    if is_installed("torch"):
        return True
    try:
        method = make(name)
    except MissingExtra:
        return False
    return not method.needs_networks and getattr(method, "learner", "") != "network"


def require_libraries(name: str) -> None:
    """Refuse a method that could not be fitted here, before anything is done for it."""
    if not works_here(name):
        raise MissingExtra(f"{is_missing(name, 'torch')}. {WITHOUT_NETWORKS}")


def takes_learners(name: str) -> bool:
    """Whether a method can be fitted with another learner than networks."""
    try:
        return "learner" in METHODS[name].__dataclass_fields__
    except MissingExtra:  # a class that does not load without torch is a network and nothing else
        return False


# -- the names of the version before --------------------------------------------------------------


def current_name(name: str) -> str:
    """What a class is called now; the others end in `Classifier`, and have always been here."""
    if name == "DoublyRobustLearner":
        return "DoublyRobustClassifier"
    known = {entry.class_name for entry in ENTRIES.values()}
    return f"{name}Classifier" if f"{name}Classifier" in known else name


def renamed(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for a module: the class of a former name, with a warning."""

    def former(name: str) -> Any:
        now = current_name(name)
        if now == name:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        tell_renamed(name, now)
        return getattr(import_module(module), now)

    return former


MEMBERS = 3  # models of an ensemble by default: their disagreement tells the luck of training
BATCH = 256  # rows per step: no worse than all of them on a table, and much sooner


def delivered(
    name: str,
    *,
    n_members: int = MEMBERS,
    n_folds: int | None = None,
    params: Mapping[str, Any] | None = None,
) -> SelectiveClassifier:
    """The method as a fitted table delivers it, an ensemble where it can be one.

    What is compared is what is delivered: `dcem fit` and `dcem compare` both make it here.
    `n_folds` is for many tables, of which each need not be fitted at its best: methods that hold
    out rows in folds take as many, and a quarter of their steps. None leaves them their own number.
    What `params` say comes before either.
    """
    params = params or {}
    method = make(name, **params)
    wanted = {"n_members": n_members, "batch_size": BATCH}
    has = method.get_params(deep=False)
    if n_folds is not None and "n_folds" in has:
        wanted |= {"n_folds": n_folds, "steps": has["steps"] // 4}
    return method.set_params(
        **{key: value for key, value in wanted.items() if key in has and key not in params}
    )
