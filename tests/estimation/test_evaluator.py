"""Estimates without truth: against plain double loops, complete labels, and the known truth."""

import itertools
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from dcem import metrics
from dcem.estimation import measures
from dcem.estimation.cross_fitting import _probability, best_mixture, on_one_thread
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import percentiles, person_folds, within_budget
from dcem.estimation.influence import share_ends, wilson
from dcem.estimation.nuisance_learners import BoostedTrees
from dcem.estimation.nuisances import RATE_FLOOR, Nuisances, fit_nuisances
from dcem.estimation.outcomes import TARGETS, Masses, masses, stand_for
from dcem.metrics.estimate import Estimate, share_interval
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError

LEVEL = 0.95

# Tables of one constant column, or of the tested alone, are on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_products_take_one_thread_and_give_the_others_back():
    with threadpool_limits(2, "blas"):
        assert on_one_thread(blas_threads)() == {1}
        assert blas_threads() == {2}


def make_problem(n: int = 60, seed: int = 0, tested: float = 0.5, **more: object) -> tuple:
    """A small table, its truth, the probabilities behind it, and a score with ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    risk = 1 / (1 + np.exp(-2 * X[:, 0]))
    e = np.clip(tested + 0.2 * np.tanh(X[:, 1]), 0.1, 0.95)
    y = (rng.random(n) < risk).astype(float)
    t = rng.random(n) < e
    group = rng.integers(2, size=n)
    problem = SelectiveLabels.from_arrays(X, np.where(t, y, np.nan), group=group, **more)
    return problem, y, e, risk, np.round(X[:, 0] + rng.normal(size=n), 1)


def exact(problem: SelectiveLabels, e: np.ndarray, m: np.ndarray) -> Nuisances:
    return Nuisances(e, m, ())  # type: ignore[arg-type]


def plain_auc(score: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    won = pairs = 0.0
    for i, j in itertools.permutations(range(len(score)), 2):
        k = 1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0
        won += p[i] * q[j] * k
        pairs += p[i] * q[j]
    return won / pairs


class TestMasses:
    def test_by_hand(self) -> None:
        problem = SelectiveLabels.from_arrays(
            np.zeros((4, 1)), [1, 0, np.nan, np.nan], weight=[1.0, 2.0, 1.0, 3.0]
        )
        e, m = np.array([0.5, 0.25, 0.5, 0.5]), np.array([0.6, 0.2, 0.3, 0.4])
        assert masses("tested", problem).positive == pytest.approx([1, 0, 0, 0])
        assert masses("tested", problem).negative == pytest.approx([0, 2, 0, 0])
        ipw = masses("ipw", problem, testing=e)
        assert ipw.positive == pytest.approx([2, 0, 0, 0])
        assert ipw.negative == pytest.approx([0, 8, 0, 0])
        c = 7 / (2 + 8)  # the weights 1/e of the tested, made to sum to the weight of everybody
        dr = masses("dr", problem, testing=e, outcome=m)
        assert dr.positive == pytest.approx(
            [0.6 + c * 0.4 / 0.5, 2 * (0.2 - c * 0.2 / 0.25), 0.3, 3 * 0.4]
        )
        assert dr.total == pytest.approx([1, 2, 1, 3])

    def test_everybody_tested_is_the_truth(self) -> None:
        problem = SelectiveLabels.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0])
        ones, m = np.ones(4), np.array([0.2, 0.4, 0.6, 0.8])
        for target in ("ipw", "dr"):
            found = masses(target, problem, testing=ones, outcome=m)
            assert found.positive == pytest.approx([1, 0, 1, 0])
            assert found.negative == pytest.approx([0, 1, 0, 1])


class TestAuc:
    @pytest.mark.parametrize("target", ["tested", "ipw", "dr", "truth"])
    def test_against_all_pairs(self, target: str) -> None:
        problem, y, e, risk, score = make_problem()
        of = masses(target, problem, testing=e, outcome=risk, truth=y)
        found = measures.auc(score, of)
        assert found.value == pytest.approx(plain_auc(score, of.positive, of.negative))

    def test_of_complete_labels_is_the_metric(self) -> None:
        _, y, _, _, score = make_problem()
        found = measures.auc(score, Masses(y, 1 - y))
        assert found.value == pytest.approx(metrics.auc(y, score))

    @pytest.mark.parametrize("target", ["ipw", "dr"])
    def test_influence_is_the_derivative_by_a_row_s_mass(self, target: str) -> None:
        problem, y, e, risk, score = make_problem(40)
        of = masses(target, problem, testing=e, outcome=risk, truth=y)
        found = measures.auc(score, of)
        for row in range(0, 40, 7):
            step = np.ones(40)
            step[row] += 1e-5
            moved = measures.auc(score, Masses(of.positive * step, of.negative * step)).value
            assert found.influence[row] == pytest.approx((moved - found.value) / 1e-5, abs=1e-5)
        assert found.influence.sum() == pytest.approx(0, abs=1e-9)

    def test_standard_error_of_complete_labels_is_that_of_a_bootstrap(self) -> None:
        _, y, _, _, score = make_problem(400)
        found = measures.auc(score, Masses(y, 1 - y)).standard_error(np.arange(400))
        rng = np.random.default_rng(1)
        again = [
            metrics.auc(y, score, weight=np.bincount(rng.integers(400, size=400), minlength=400))
            for _ in range(400)
        ]
        assert found == pytest.approx(np.std(again), rel=0.12)

    def test_standard_error_of_a_doubly_robust_one_is_that_of_a_bootstrap(self) -> None:
        problem, _, e, risk, score = make_problem(400)
        of = masses("dr", problem, testing=e, outcome=risk)
        found = measures.auc(score, of).standard_error(np.arange(400))
        rng, again = np.random.default_rng(1), []
        for _ in range(400):
            count = np.bincount(rng.integers(400, size=400), minlength=400)
            again.append(measures.auc(score, Masses(of.positive * count, of.negative * count)))
        assert found == pytest.approx(np.std([one.value for one in again]), rel=0.12)

    def test_rows_of_a_person_count_together(self) -> None:
        _, y, _, _, score = make_problem(200)
        twice = measures.auc(np.tile(score, 2), Masses(np.tile(y, 2), np.tile(1 - y, 2)))
        once = measures.auc(score, Masses(y, 1 - y))
        person = np.tile(np.arange(200), 2)
        assert twice.standard_error(person) == pytest.approx(
            once.standard_error(np.arange(200)), rel=0.02
        )
        assert twice.standard_error(np.arange(400)) < 0.8 * twice.standard_error(person)

    def test_order_of_rows_does_not_matter(self) -> None:
        problem, _, e, risk, score = make_problem()
        of = masses("dr", problem, testing=e, outcome=risk)
        order = np.random.default_rng(5).permutation(len(score))
        shuffled = measures.auc(score[order], Masses(of.positive[order], of.negative[order]))
        found = measures.auc(score, of)
        assert shuffled.value == pytest.approx(found.value)
        assert shuffled.influence == pytest.approx(found.influence[order])


class TestOtherFunctionals:
    def test_net_benefit_by_hand(self) -> None:
        y, score = np.array([1, 0, 1, 0.0]), np.array([0.9, 0.8, 0.3, 0.1])
        found = measures.net_benefit(score, Masses(y, 1 - y), 0.5)
        assert found.value == pytest.approx((1 - 1) / 4)
        assert measures.net_benefit(score, Masses(y, 1 - y), 0.2).value == pytest.approx(
            (2 - 0.25) / 4
        )

    def test_precision_at_capacity_by_hand_and_with_ties(self) -> None:
        y, score = np.array([1, 0, 1, 0, 0.0]), np.array([5, 4, 3, 2, 1.0])
        of = Masses(y, 1 - y)
        assert measures.precision_at_capacity(score, of, 0.2).value == pytest.approx(1)
        assert measures.precision_at_capacity(score, of, 0.4).value == pytest.approx(1 / 2)
        flat = measures.precision_at_capacity(np.zeros(5), of, 0.2)
        assert flat.value == pytest.approx(2 / 5)  # all alike: the share of positives

    def test_precision_at_capacity_error_is_that_of_a_bootstrap(self) -> None:
        rng = np.random.default_rng(3)
        score = rng.normal(size=1000)
        y = (rng.random(1000) < 1 / (1 + np.exp(-score))).astype(float)
        found = measures.precision_at_capacity(score, Masses(y, 1 - y), 0.1)
        again = []
        for _ in range(400):
            count = np.bincount(rng.integers(1000, size=1000), minlength=1000).astype(float)
            one = measures.precision_at_capacity(score, Masses(y * count, (1 - y) * count), 0.1)
            again.append(one.value)
        assert found.standard_error(np.arange(1000)) == pytest.approx(np.std(again), rel=0.15)

    def test_calibration_in_the_large_by_hand(self) -> None:
        y, score = np.array([1, 0.0]), np.array([0.5, 0.3])
        found = measures.calibration_in_the_large(score, Masses(y, 1 - y))
        assert found.value == pytest.approx(0.4 - 0.5)


class TestSmallGroups:
    def test_an_area_of_few_people_takes_students_quantile(self) -> None:
        of = measures.auc(np.array([3.0, 1, 0.5, 0, 4, 1.5]), Masses(*_halves()))
        wide, people = (of.estimate(None, share=True, behind=n) for n in (3, 10**6))
        assert logit(wide.high) - logit(wide.low) > 1.2 * (logit(people.high) - logit(people.low))
        error = of.standard_error(None) / (of.value * (1 - of.value))
        assert logit(people.high) - logit(of.value) > 1.2 * norm.ppf(0.975) * error

    def test_net_benefit_counts_a_side_on_which_nobody_was_seen(self) -> None:
        """None of 12 acted on was positive: up to a quarter of such people may be."""
        y = np.r_[np.zeros(12), np.ones(30), np.zeros(58)]
        score = np.r_[np.full(12, 0.9), np.full(88, 0.1)]
        problem = SelectiveLabels.from_arrays(score[:, None], y)
        for truth in (y, 1 - y):
            found = Evaluator(problem, truth=truth).net_benefit("truth", score, 0.2)
            low, high = wilson(truth[0], 12)
            assert found.value == pytest.approx(0.12 * (truth[0] - 0.2) / 0.8)
            assert found.low <= 0.12 * (low - 0.2) / 0.8
            assert found.high >= 0.12 * (high - 0.2) / 0.8

    @pytest.mark.parametrize("copies", [1, 5, 20])
    def test_people_nobody_tested_do_not_prove_that_nobody_is_positive(self, copies: int) -> None:
        """Of forty tests none was positive: that is all that is known of those acted on."""
        n = 3000 * copies
        acted = np.random.default_rng(0).random(n) > 0.8
        tested, y = np.zeros(n, bool), np.zeros(n)
        tested[np.flatnonzero(acted)[:40]] = tested[np.flatnonzero(~acted)[:400]] = True
        y[np.flatnonzero(tested & ~acted)[:60]] = 1
        e = np.where(acted, 40 / acted.sum(), 400 / (~acted).sum())
        m = np.where(tested & acted, 0.061, 0.06)  # the correction takes away a little too much
        problem = SelectiveLabels.from_arrays(acted[:, None], np.where(tested, y, np.nan))
        judge = Evaluator(problem, nuisances=exact(problem, e, m))
        by_rank = judge.precision_at_capacity("dr", 1.0 * acted, acted.mean())
        for found in (judge.when_acting("dr", acted)["precision"]["everybody"], by_rank):
            assert found.value == found.low == 0
            assert found.high == pytest.approx(wilson(0, 40)[1])

    def test_a_share_close_to_0_has_the_interval_of_its_neighbours(self) -> None:
        shares = np.linspace(-0.02, 0.1, 1201)
        for reach, people in ((0.04, 40), (0.04, 4000), (0.6, 5), (1e-9, 40)):
            ends = np.array([share_ends(share, reach, people) for share in shares])
            jumps = np.abs(np.diff(ends, axis=0))[shares[:-1] > 2 * 0.0001 * (reach < 1e-6)]
            assert jumps.max() < 0.003
            mirrored = np.array([share_ends(1 - share, reach, people) for share in shares])
            assert mirrored == pytest.approx(1 - ends[:, ::-1])
            assert (ends[:, 0] <= np.maximum(shares, 0)).all()
            assert (ends[:, 1] >= shares).all()
            assert share_ends(0.3, 0.2, people) == pytest.approx(share_interval(0.3, 0.2))

    def test_precision_close_to_nothing_is_not_known_to_a_hundredth_nor_to_a_half(self) -> None:
        """Three in a hundred of those acted on, fewer than fifty of whom were tested."""
        held, widths = [], []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            x = rng.normal(size=6000)
            acted = x > 1.2
            y = rng.random(6000) < np.where(acted, 0.03, 0.1)
            e = np.where(acted, 0.06, 0.3)
            tested = rng.random(6000) < e
            problem = SelectiveLabels.from_arrays(x[:, None], np.where(tested, y, np.nan))
            m = np.where(acted, 0.05, 0.1) * np.exp(0.3 * np.sin(3 * x))
            judge = Evaluator(problem, fold=np.arange(6000) % 5, nuisances=exact(problem, e, m))
            found = judge.when_acting("dr", acted)["precision"]["everybody"]
            held.append(found.low <= 0.03 <= found.high)
            widths.append(found.high - found.low)
        assert np.mean(held) > 0.93
        assert np.mean(widths) < 0.2
        assert min(widths) > 0.04

    def test_a_difference_puts_the_arms_together(self) -> None:
        one, other = Estimate(0.9, 0.7, 0.96), Estimate(0.8, 0.75, 0.84)
        found = one.minus(other)
        assert found.value == pytest.approx(0.1)
        assert found.low == pytest.approx(0.1 - np.hypot(0.2, 0.04))
        assert found.high == pytest.approx(0.1 + np.hypot(0.06, 0.05))


def _halves() -> tuple[np.ndarray, np.ndarray]:
    y = np.array([1.0, 0, 1, 0, 1, 0])
    return y, 1 - y


class TestActing:
    def test_rates_by_hand(self) -> None:
        y = np.array([1.0, 1, 1, 0, 0])
        acted, of = np.array([True, True, False, True, False]), Masses(y, 1 - y)
        assert measures.true_positive_rate(acted, of).value == pytest.approx(2 / 3)
        assert measures.precision(acted, of).value == pytest.approx(2 / 3)
        assert measures.share_acted_on(acted, of).value == pytest.approx(3 / 5)

    def test_small_counts_at_a_capacity_are_withheld_whatever_the_scale_of_scores(self) -> None:
        """Three of those ranked highest are positive; no score is close to 1."""
        rng = np.random.default_rng(0)
        score, tested = rng.random(2000) * 0.2, rng.random(2000) < 0.5
        y = (rng.random(2000) < 0.3) * 1.0
        top = percentiles(score, np.zeros(2000)) > 0.95
        y[top] = 0
        y[np.flatnonzero(top & tested)[:3]] = 1
        problem = SelectiveLabels.from_arrays(score[:, None], np.where(tested, y, np.nan))
        judge = Evaluator(problem, nuisances=exact(problem, np.full(2000, 0.5), np.full(2000, 0.3)))
        for rank in (score, percentiles(score, np.zeros(2000)), 100 + score):
            found = judge.precision_at_capacity("tested", rank, 0.05)
            assert "one side of the decision" in found.reason

    @pytest.mark.parametrize("share", [1.0, 0.1])
    def test_weighting_does_not_show_what_is_withheld_where_all_weigh_alike(self, share) -> None:
        """All are tested, or each is with one probability: weighted shares are those of counts."""
        rng = np.random.default_rng(1)
        n = round(600 / share)
        tested = rng.random(n) < share
        y = (rng.random(n) < 0.2) * 1.0
        acted = np.zeros(n, bool)
        for outcome, number in ((1, 4), (0, 50)):
            acted[np.flatnonzero(tested & (y == outcome))[:number]] = True
        more = {"testing_probability": np.full(n, share)} if share < 1 else {}
        X, seen = rng.normal(size=(n, 1)), np.where(tested, y, np.nan)
        problem = SelectiveLabels.from_arrays(X, seen, tested=tested, **more)
        models = replace(exact(problem, np.full(n, share), np.full(n, 0.2)), known=True)
        judge = Evaluator(problem, nuisances=models)
        for target in ("tested", "ipw", "dr"):
            found = judge.when_acting(target, acted)
            assert "one side of the decision" in found["precision"]["everybody"].reason
            assert found["share_acted_on"]["everybody"].estimable
        uneven = replace(models, testing=np.where(np.arange(n) % 2, share, 0.9 * share))
        weighted = Evaluator(problem, nuisances=uneven).when_acting("ipw", acted)
        assert weighted["precision"]["everybody"].estimable

    def test_a_withheld_group_is_not_everybody_less_the_other(self) -> None:
        rng = np.random.default_rng(0)
        n = 1200
        of_b, tested, acted = rng.random(n) < 0.2, rng.random(n) < 0.5, rng.random(n) < 0.35
        y = (rng.random(n) < 0.3) * 1.0
        positive = np.flatnonzero(of_b & tested & (y == 1))
        acted[positive], acted[positive[:4]] = False, True
        problem = SelectiveLabels.from_arrays(
            rng.normal(size=(n, 1)), np.where(tested, y, np.nan), group=np.where(of_b, "b", "a")
        )
        judge = Evaluator(problem, nuisances=exact(problem, np.full(n, 0.5), np.full(n, 0.3)))
        found = judge.when_acting("tested", acted)
        for measure in ("true_positive_rate", "precision"):
            assert found[measure]["everybody"].estimable
            assert not found[measure]["b"].estimable
            assert "withheld" in found[measure]["a"].reason
        assert all(one.estimable for one in found["share_acted_on"].values())

    def test_known_truth_gives_the_xauc_of_the_metric(self) -> None:
        problem, y, e, risk, score = make_problem(400)
        judge = Evaluator(problem, truth=y, nuisances=exact(problem, e, risk))
        known = metrics.xauc(y, score, np.asarray(problem.group_names)[problem.group])
        for pair, found in judge.xauc("truth", score).items():
            assert found.value == pytest.approx(known[pair])


class TestNuisances:
    def test_mixture_finds_the_better_model(self) -> None:
        rng = np.random.default_rng(0)
        p = rng.uniform(0.05, 0.95, 5000)
        y = rng.random(5000) < p
        wrong = np.full(5000, 0.5)
        likelihood = np.stack([np.where(y, g, 1 - g) for g in (wrong, p)])
        assert best_mixture(likelihood, np.ones(5000)) == pytest.approx([0, 1], abs=0.02)

    def test_no_row_is_predicted_by_models_that_saw_it(self) -> None:
        # one kind of model: its share of the mixture is 1, whatever the labels
        def trees(n_classes: int, seed: int) -> dict:
            return {"trees": BoostedTrees(rounds=20, random_state=seed)}

        problem, *_ = make_problem(300)
        fold = person_folds(problem, 3, 0)
        found = fit_nuisances(problem, fold, 0, learners=trees)
        flipped = np.where(fold == 0, 1 - problem.y_obs, problem.y_obs)
        other = SelectiveLabels.from_arrays(problem.X, flipped, group=problem.group)
        again = fit_nuisances(other, fold, 0, learners=trees)
        assert again.outcome[fold == 0] == pytest.approx(found.outcome[fold == 0])
        assert np.abs(again.outcome - found.outcome)[fold == 1].max() > 0.05
        assert again.testing == pytest.approx(found.testing)

    def test_truncation(self) -> None:
        problem, *_ = make_problem()
        low = exact(problem, np.full(60, 1e-6), np.full(60, 0.5))
        high = exact(problem, np.append(np.full(59, 0.5), 1e-6), np.full(60, 0.5))
        assert low.truncated_testing.min() == 1e-6  # rare for everybody: nothing to truncate
        assert high.truncated_testing.min() == pytest.approx(RATE_FLOOR * 0.5, rel=0.03)
        assert replace(high, known=True).truncated_testing.min() == 1e-6  # those of a design


class TestFolds:
    def test_people_stay_together_and_kinds_are_shared_out(self) -> None:
        rng = np.random.default_rng(0)
        problem, *_ = make_problem(600, id=rng.integers(200, size=600))
        fold = person_folds(problem, 4, 0)
        for person in np.unique(problem.person):
            assert len(set(fold[problem.person == person])) == 1
        positives = np.bincount(fold[problem.y_obs == 1], minlength=4)
        assert positives.min() > 0.6 * positives.max()

    def test_too_many_folds(self) -> None:
        problem, *_ = make_problem()
        with pytest.raises(InputError, match="folds"):
            person_folds(problem, 61, 0)

    def test_a_person_of_too_many_rows_leaves_room_for_the_others(self) -> None:
        problem, *_ = make_problem(600, id=np.where(np.arange(600) < 400, 0, np.arange(600)))
        for seed in range(5):
            assert len(within_budget(problem, 150, seed)) == 150
        with pytest.raises(InputError, match="Everybody has more than 150 rows"):
            within_budget(problem.subset(np.arange(400)), 150, 0)

    def test_percentiles_make_folds_comparable(self) -> None:
        fold = np.repeat([0, 1], 50)
        score = np.tile(np.linspace(0, 1, 50), 2)
        shifted = np.where(fold == 0, score, 10 + 3 * score)
        assert percentiles(shifted, fold) == pytest.approx(percentiles(score, fold))


class TestEvaluator:
    def test_rows_of_weight_0_are_nobody_and_scores_keep_their_rows(self) -> None:
        rng = np.random.default_rng(3)
        weight = rng.choice([0.0, 1, 2], 600)
        problem, y, e, risk, score = make_problem(
            600, weight=weight, id=rng.integers(300, size=600)
        )
        fold, kept, acted = person_folds(problem, 5, 0), weight > 0, score > 0.3
        models = exact(problem, e, risk)
        with pytest.warns(DataWarning, match="of 600 rows have a weight of 0"):
            judge = Evaluator(problem, truth=y, fold=fold, nuisances=models)
        plain = Evaluator(
            problem.subset(kept),
            truth=y[kept],
            fold=fold[kept],
            nuisances=exact(problem, e[kept], risk[kept]),
        )
        assert judge.overlap.tested == plain.overlap.tested == (problem.tested & kept).sum()
        odd = np.where(kept, score, 1e6)  # of nobody
        for target in ("tested", "ipw", "dr", "truth"):
            assert judge.auc(target, odd) == plain.auc(target, score[kept])
            assert judge.when_acting(target, acted) == plain.when_acting(target, acted[kept])
            for capacity in (0.1, 0.3):
                found = judge.precision_at_capacity(target, odd, capacity)
                assert found == plain.precision_at_capacity(target, score[kept], capacity)

    def test_a_column_of_other_rows_is_refused(self) -> None:
        problem, y, e, risk, score = make_problem(200)
        judge = Evaluator(problem, truth=y, nuisances=exact(problem, e, risk))
        series = pd.Series(score)
        assert judge.auc("tested", series) == judge.auc("tested", score)
        for ask in (
            lambda one: judge.auc("tested", one),
            lambda one: judge.when_acting("tested", one > 0),
            lambda one: Evaluator(problem, truth=one > 0, nuisances=judge.nuisances),
        ):
            with pytest.raises(InputError, match="different pandas indices"):
                ask(series.sort_values())
        some = problem.subset(np.arange(50, 200))
        part = Evaluator(some, nuisances=exact(some, e[50:], risk[50:]))
        assert part.auc("tested", series[50:]) == part.auc("tested", score[50:])

    def test_everybody_tested_all_targets_agree(self) -> None:
        problem, y, _, risk, score = make_problem(200)
        full = SelectiveLabels.from_arrays(problem.X, y, group=problem.group)
        judge = Evaluator(full, truth=y, nuisances=exact(full, np.ones(200), risk))
        known = judge.auc("truth", score)
        for target in ("tested", "ipw", "dr"):
            found = judge.auc(target, score)
            assert (found.value, found.low, found.high) == pytest.approx(
                (known.value, known.low, known.high)
            )

    def test_doubly_robust_if_either_model_is_right(self) -> None:
        problem, y, e, risk, score = make_problem(20_000, seed=1)
        wrong_e, wrong_m = np.full(len(y), 0.5), np.full(len(y), 0.9)
        truth = metrics.auc(y, score)
        for models in (exact(problem, e, wrong_m), exact(problem, wrong_e, risk)):
            judge = Evaluator(problem, nuisances=models)
            assert judge.auc("dr", score).value == pytest.approx(truth, abs=0.012)

    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            (lambda judge, score: judge.auc("dr", score[:10]), "10 values for 60 rows"),
            (lambda judge, score: judge.auc("dr", score * np.nan), "'score' is NaN in 60 of 60"),
            (lambda judge, score: judge.xauc("dr", [None, *score[1:]]), "'score' is NaN in 1"),
            (lambda judge, score: judge.prevalence("ips"), "Did you mean 'ipw'"),
            (lambda judge, score: judge.net_benefit("dr", score, 0.5, "men"), "everybody, 0, 1"),
            (lambda judge, score: judge.net_benefit("dr", score, 20), "`threshold` must lie"),
            (lambda judge, score: Evaluator(judge.problem, truth=score), "0 or 1 in every row"),
        ],
    )
    def test_what_cannot_be_judged_is_refused(self, asked, answer) -> None:
        problem, _, e, risk, score = make_problem()
        with pytest.raises(InputError, match=answer):
            asked(Evaluator(problem, nuisances=exact(problem, e, risk)), score)

    def test_a_score_gains_nothing_over_itself(self) -> None:
        problem, _, e, risk, score = make_problem(400)
        judge = Evaluator(problem, nuisances=exact(problem, e, risk))
        assert judge.auc_gain("dr", score, score + 1) == Estimate(0.0, 0.0, 0.0)

    def test_masks_may_be_numbers(self) -> None:
        problem, _, e, risk, _ = make_problem(400)
        judge = Evaluator(problem, nuisances=exact(problem, e, risk))
        masks = risk > 0.3, risk > 0.5
        for as_given in (lambda mask: 1 * mask, lambda mask: mask.tolist()):
            given = [as_given(mask) for mask in masks]
            assert judge.kickout("dr", *given) == judge.kickout("dr", *masks)
            assert judge.when_acting("dr", given[0]) == judge.when_acting("dr", masks[0])

    def test_rows_without_weight_stand_behind_nothing(self) -> None:
        problem, _, e, risk, score = make_problem(400)
        weight = np.where(problem.group == 1, 0.0, 1.0)
        some = replace(problem, weight=weight)
        judge = Evaluator(some, nuisances=exact(some, e, risk))
        assert [*judge.reach.overlap] == ["everybody", "0"]
        for target in ("tested", "dr"):
            assert "fewer than 10 people are tested" in judge.auc(target, score, "1").reason
            alone = Evaluator(
                (part := problem.subset(problem.group == 0)),
                nuisances=exact(part, e[weight > 0], risk[weight > 0]),
            )
            assert judge.rarer(target) == alone.rarer(target)

    def test_a_group_with_one_class_is_not_estimable(self) -> None:
        problem, _, e, risk, score = make_problem(400)
        y = problem.y_obs.copy()
        y[(problem.group == 1) & problem.tested] = 1
        one_sided = SelectiveLabels.from_arrays(problem.X, y, group=problem.group)
        judge = Evaluator(one_sided, nuisances=exact(one_sided, e, risk))
        for target in ("tested", "ipw", "dr"):
            found = judge.auc(target, score, "1")
            assert not found.estimable
            assert "negative" in found.reason
            assert "group 1" in found.reason
            assert not judge.auc_differences(target, score)["0", "1"].estimable
            assert judge.auc(target, score).estimable

    def test_out_of_reach_is_left_out_and_said(self) -> None:
        problem, y, e, risk, score = make_problem(2000)
        never = np.arange(2000) < 400
        rows = SelectiveLabels.from_arrays(
            problem.X, np.where(never, np.nan, problem.y_obs), group=problem.group
        )
        judge = Evaluator(rows, nuisances=exact(rows, np.where(never, 0.001, e), risk))
        assert judge.overlap.estimable
        assert not judge.overlap.complete
        assert judge.overlap.reach == pytest.approx(0.8, abs=0.05)
        for target in ("ipw", "dr"):
            assert not judge.masses[target].total[never].any()
            found = judge.auc(target, score)
            assert found.low < metrics.auc(y[~never], score[~never]) < found.high
            told = next(t for t in judge.targets if t.key == target)
            assert re.search(r"the 7[78](\.\d)? % within reach", told.name)
            assert told.reach == pytest.approx(0.78, abs=0.005)
            assert told.reach == judge.overlap.shareable(len(judge.problem)).reach
            assert "Right for those within reach" in told.assumption
            assert "each of them had a real chance" in told.assumption
            assert "everybody" not in told.assumption
        assert judge.auc("tested", score).estimable

    def test_acting_on_people_out_of_reach_is_not_judged_by_the_others(self) -> None:
        problem, _, e, risk, _ = make_problem(2000)
        never = np.arange(2000) < 400
        rows = SelectiveLabels.from_arrays(
            problem.X, np.where(never, np.nan, problem.y_obs), group=problem.group
        )
        judge = Evaluator(rows, nuisances=exact(rows, np.where(never, 0.001, e), risk))
        numbers = np.arange(2000)
        for acted, judged in ((numbers < 420, False), (numbers >= 1600, True)):
            for measure in judge.when_acting("dr", acted).values():
                assert {one.estimable for one in measure.values()} == {judged}
        outside = judge.when_acting("dr", never)["true_positive_rate"]["everybody"]
        assert "out of reach" in outside.reason

    def test_too_little_within_reach_is_refused(self) -> None:
        problem, _, e, risk, score = make_problem(2000)
        never = np.arange(2000) < 1900
        rows = SelectiveLabels.from_arrays(
            problem.X, np.where(never, np.nan, problem.y_obs), group=problem.group
        )
        judge = Evaluator(rows, nuisances=exact(rows, np.where(never, 0.001, e), risk))
        assert not judge.overlap.estimable
        for target in ("ipw", "dr"):
            assert "out of reach" in judge.auc(target, score).reason

    @pytest.mark.parametrize("rule", ["box", "checkerboard"])
    def test_a_rule_that_never_tests_some_is_seen_through_smooth_models(self, rule: str) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2000, 3))
        inside = {
            "box": (X[:, 0] > 0) & (X[:, 1] < 0.5),
            "checkerboard": (X[:, 0] > 0) ^ (X[:, 1] > 0),
        }[rule]
        y = rng.random(2000) < 1 / (1 + np.exp(-X[:, 2]))
        seen = np.where(inside & (rng.random(2000) < 0.7), y, np.nan)
        judge = Evaluator(SelectiveLabels.from_arrays(X, seen))
        within = judge.reach.within
        assert not judge.overlap.complete
        assert np.mean(within[inside]) > 0.7  # most of those who are tested
        assert np.mean(within[~inside]) < 0.25  # few of those who never are

    def test_truth_reaches_its_own_target_alone(self) -> None:
        problem, y, e, risk, score = make_problem(300)
        other = np.where(problem.tested, y, 1 - y)
        judges = [
            Evaluator(problem, truth=truth, nuisances=exact(problem, e, risk))
            for truth in (y, other)
        ]
        for target in ("tested", "ipw", "dr"):
            assert judges[0].auc(target, score) == judges[1].auc(target, score)
        assert judges[0].auc("truth", score) != judges[1].auc("truth", score)

    def test_a_perfect_score_is_not_certain(self) -> None:
        y = np.repeat([0.0, 1.0], 20)
        full = SelectiveLabels.from_arrays(np.zeros((40, 1)), y, tested=np.ones(40))
        judge = Evaluator(full, nuisances=exact(full, np.ones(40), np.full(40, 0.5)))
        found = judge.auc("tested", y)
        assert found.value == found.high == 1
        assert 0.8 < found.low < 0.9  # twenty of twenty
        ten = judge.precision_at_capacity("tested", y, 0.25)
        assert (ten.low, ten.high) == pytest.approx(wilson(1.0, 10))

    def test_targets_carry_their_assumptions(self) -> None:
        problem, _, e, risk, _ = make_problem(300)
        judge = Evaluator(problem, nuisances=exact(problem, e, risk))
        assert [target.key for target in judge.targets] == ["tested", "ipw", "dr"]
        assert all(target.assumption for target in TARGETS.values())

    def test_coverage_with_known_models(self) -> None:
        """95 % intervals contain the population's value about as often (all else known)."""
        rng = np.random.default_rng(0)
        population = rng.normal(size=200_000)
        y = rng.random(200_000) < 1 / (1 + np.exp(-2 * population))
        truth = metrics.auc(y, population)
        covered = 0
        for seed in range(150):
            draw = np.random.default_rng(seed)
            x = draw.normal(size=800)
            risk = 1 / (1 + np.exp(-2 * x))
            e = 1 / (1 + np.exp(-x))
            label = np.where(draw.random(800) < e, draw.random(800) < risk, np.nan)
            problem = SelectiveLabels.from_arrays(x[:, None], label)
            found = Evaluator(problem, nuisances=exact(problem, e, risk)).auc("dr", x)
            covered += found.low <= truth <= found.high
        assert 0.88 <= covered / 150 <= 0.99


def test_where_nobody_is_tested_nothing_is_divided() -> None:
    problem = SelectiveLabels(
        X=np.zeros((3, 1)),
        y_obs=np.full(3, np.nan),
        tested=np.zeros(3),
        group=np.zeros(3),
        id=None,
        weight=None,
        feature_names=("x",),
        group_names=("all",),
        row=np.arange(3),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stand_for(problem, np.zeros(3)).tolist() == [0, 0, 0]
        assert masses("ipw", problem, testing=np.zeros(3)).total.tolist() == [0, 0, 0]


def test_probabilities_of_classes_that_training_did_not_hold_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    model = LogisticRegression().fit(X[y != 1], y[y != 1])
    probability = _probability(model, X, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
    assert (probability[:, 1] < 1e-3).all()
