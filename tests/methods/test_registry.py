"""Methods by name: what is known without loading them, and what a new one takes."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dcem import methods
from dcem.extras import MissingExtra
from dcem.methods.registry import (
    ENTRIES,
    METHODS,
    MethodEntry,
    current_name,
    delivered,
    result_name,
    takes_learners,
)
from dcem.table.messages import InputError

FORMER = [
    ("supervised", "ObservedLabels"),
    ("supervised", "Oracle"),
    ("supervised", "TestedOnly"),
    ("weighting", "InversePropensity"),
    ("weighting", "DoublyRobustLearner"),
    ("dragonnet", "DragonNet"),
    ("peer_loss", "GroupPeerLoss"),
    ("robust_losses", "TruncatedLq"),
    ("self_ensemble", "SelfEnsemble"),
    ("dividemix", "DivideMix"),
    ("sar_em", "SarEM"),
    ("dcem", "ImputationOnly"),
]


def test_listing_and_judging_methods_loads_neither_torch_nor_classes():
    code = """
import sys
from dcem import methods
from dcem.methods.registry import ENTRIES
assert methods.names(usable=True)
assert all(entry.kind for entry in ENTRIES.values())
assert not {"torch", "lightgbm", "dcem.methods.base"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", methods.names())
def test_an_entry_says_what_its_class_says(name):
    cls, entry = METHODS[name], ENTRIES[name]
    assert cls.name == name
    assert cls.__name__ == entry.class_name
    assert cls.__name__.endswith("Classifier")
    assert getattr(methods, cls.__name__) is cls
    assert cls().uses_truth == (entry.kind == "oracle")
    assert f'"{entry.kind}"' in (MethodEntry.__doc__ or "")
    assert not takes_learners(name) or not cls.needs_networks


@pytest.mark.parametrize(("module", "name"), FORMER)
def test_former_names_work_with_a_warning(module, name):
    home = importlib.import_module(f"dcem.methods.{module}")
    with pytest.warns(FutureWarning, match=f"{name} is now called"):
        assert getattr(home, name) is getattr(home, current_name(name))
    with pytest.warns(FutureWarning, match=f"{name} is now called"):
        assert getattr(methods, name) is getattr(home, current_name(name))


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Tested"):
        _ = methods.Tested
    with pytest.raises(InputError, match="Did you mean 'tested-only'"):
        methods.make("tested-onl")
    with pytest.raises(InputError, match="Did you mean 'hidden'"):
        methods.make("dcem", hiden=3)


def test_a_learner_is_refused_in_the_same_words_without_torch(monkeypatch):
    """Methods that are networks alone do not load there; the others still take learners."""
    with pytest.raises(InputError) as with_torch:
        methods.make("ensemble", learner="boost")
    load = MethodEntry.load

    def without_torch(entry):
        if entry.class_name == "DragonNetClassifier":
            raise MissingExtra("DragonNetClassifier needs torch, which is not installed")
        return load(entry)

    monkeypatch.setattr(MethodEntry, "load", without_torch)
    with pytest.raises(InputError, match="has learners of its own and takes no other") as without:
        methods.make("ensemble", learner="boost")
    assert str(without.value) == str(with_torch.value)


def test_every_published_choice_is_on_a_class():
    for name in methods.names():
        if not METHODS[name].as_published:
            with pytest.raises(InputError, match="no published run"):
                methods.published(name)
            continue
        for task in ("sinusoid", "sepsis"):
            made = methods.published(name, task)
            assert (made.random_state, made.preprocess, made.batch_size) == (42, None, None)
    assert methods.published("group-1-only").group == 1
    assert methods.published("truncated-lq").get_params()["q"] == 0.1
    assert methods.published("dcem", "sepsis").propensity_settings.patience == 1000


def test_log_odds_decide_as_predict_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(rng.random(200) < 0.7, X[:, 0] > 0, np.nan)
    for params in ({"learner": "linear"}, {"learner": "forest"}, {"hidden": (4,), "steps": 20}):
        model = methods.make("tested-only", random_state=0, **params).fit(X, y)
        z = model.decision_function(X)
        assert np.allclose(1 / (1 + np.exp(-z)), model.predict_proba(X)[:, 1])
        assert np.array_equal(z > 0, model.predict(X) == model.classes_[1])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("tested-only:linear", {"learner": "boost"}),
        ("tested-only:linear", {"learner": LogisticRegression()}),
        ("group-1-only", {"group": 0}),
    ],
)
def test_a_parameter_that_contradicts_the_name_is_refused(name, params):
    with pytest.raises(InputError, match=f"{name}.*contradict each other"):
        methods.make(name, **params)
    with pytest.raises(InputError, match="contradict each other"):
        delivered(name, params=params)
    assert methods.make("tested-only:linear", learner="linear").learner == "linear"


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("tested-only:linear", "tested-only:linear"),
        ("ensemble", "ensemble"),
        ("group-only", "group-0-only"),
        ("group-0-only", "group-0-only"),
        ("group-2-only:boost", "group-2-only:boost"),
    ],
)
def test_names_in_tables_of_results_say_what_was_fitted(name, known_as):
    assert result_name(name) == result_name(known_as) == known_as
    assert METHODS[known_as] is METHODS[name]
    made = methods.make(known_as)
    said = getattr(made, "learner", ""), getattr(made, "group", 0)
    assert result_name(made.name, *said).removesuffix(":network") == known_as
