"""Small networks train on one thread, and the caller's numbers of threads are as they were."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info, threadpool_limits

import dcem
from dcem.estimation import SelectiveKFold, scorer
from dcem.methods import fit_many, make

torch = pytest.importorskip("torch")
from torch.overrides import TorchFunctionMode  # noqa: E402  # after the check that torch is there

MANY = 3
SMALL = {"max_iter": 2, "random_state": 0}


class Seen(TorchFunctionMode):
    """Counts the numbers of threads that PyTorch's functions run with."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: Counter[int] = Counter()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.threads[torch.get_num_threads()] += 1
        return function(*args, **(kwargs or {}))

    @property
    def usual(self) -> int:
        """The number of threads of most of the functions."""
        return self.threads.most_common(1)[0][0]


def table(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(float)
    y[rng.random(n) < 0.4] = np.nan
    return X, y, rng.integers(0, 2, n)


def blas_threads() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def usual_in_new_threads() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


@pytest.fixture(autouse=True)
def many_threads():
    """The caller works with three threads, and so does what is begun later."""
    before = torch.get_num_threads()
    torch.set_num_threads(MANY)
    with threadpool_limits(2, "blas"):
        yield
        assert torch.get_num_threads() == MANY
        assert usual_in_new_threads() == MANY
        assert set(blas_threads()) == {2}
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["dcem", "tested-only", "sar-em", "dragonnet"])
def test_a_fit_takes_one_thread(name) -> None:
    X, y, group = table()
    steps = {"steps": 20} if name in ("tested-only", "dragonnet") else {"max_iter": 2}
    with Seen() as seen:
        make(name, random_state=0, **steps).fit(X, y, sensitive_features=group)
    assert seen.usual == 1


def test_so_does_a_prediction_for_few_rows() -> None:
    X, y, group = table()
    model = make("dcem", **SMALL).fit(X, y, sensitive_features=group)
    with Seen() as seen:
        model.predict_proba(X)
    assert seen.usual == 1


def test_so_does_cross_validation() -> None:
    X, y, _ = table()
    with Seen() as seen:
        cross_val_score(
            dcem.DCEMClassifier(**SMALL),
            X,
            y,
            cv=SelectiveKFold(2),
            scoring=scorer("dr-auc"),
            error_score="raise",
        )
    assert seen.usual == 1


def test_so_do_many_fits_together() -> None:
    X, y, group = table()
    problem = dcem.SelectiveLabels.from_arrays(X, y, group=group)
    threads = set()
    fit_many(
        make("dcem", **SMALL),
        [problem] * 2,
        progress=lambda done, total: threads.add((torch.get_num_threads(), *blas_threads())),
    )
    assert threads == {(1, *[1] * len(blas_threads()))}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_fit_that_fails_gives_the_threads_back(error) -> None:
    X, y, group = table()
    problem = dcem.SelectiveLabels.from_arrays(X, y, group=group)

    def fail(done: int, total: int) -> None:
        raise error

    for name in ("dcem", "ensemble"):
        with pytest.raises(error):
            fit_many(make(name, random_state=0), [problem], progress=fail)
    # the fixture looks at the threads


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_two_fits_that_overlap_give_the_threads_back(first_to_end) -> None:
    """Each thread waits for the other to be in its fit; then one ends long before the other."""
    X, y, group = table()
    problem = dcem.SelectiveLabels.from_arrays(X, y, group=group)
    both = [Barrier(2), Barrier(2)]

    def fit(number: int) -> tuple[set[int], int]:
        asked, inside = [0], set()

        def look(done: int, total: int) -> None:
            inside.add(torch.get_num_threads())
            asked[0] += 1
            if asked[0] == 1:
                both[0].wait(300)
            if asked[0] == 2 and number != first_to_end:
                both[1].wait(300)

        fit_many(make("dcem", **SMALL), [problem], progress=look)
        if number == first_to_end:
            both[1].wait(300)
        return inside, torch.get_num_threads()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(fit, range(2)))
    assert results == [({1}, MANY)] * 2


def test_audits_that_overlap_with_a_fit_give_the_threads_back() -> None:
    X, y, group = table()
    problem = dcem.SelectiveLabels.from_arrays(X, y, group=group)
    with ThreadPoolExecutor(3) as pool:
        audits = [pool.submit(dcem.audit_labels, problem) for _ in range(2)]
        fit = pool.submit(make("ensemble", random_state=0).fit_problem, problem)
        assert all(audit.result() for audit in audits)
        fit.result()


def test_a_wide_network_keeps_the_threads() -> None:
    X, y, group = table()
    with Seen() as seen:
        made = make("tested-only", steps=5, hidden=(512, 512), random_state=0)
        made.fit(X, y, sensitive_features=group)
    assert seen.usual == MANY
