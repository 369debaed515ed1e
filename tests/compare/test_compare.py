"""Methods compared on a table: out of fold, per target, with planted outcomes."""

from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dcem.cli import COMMANDS, app
from dcem.cli._lazy import load_command
from dcem.compare import compare_methods
from dcem.compare.planted import (
    CEILING,
    FAMILIES,
    GAMMA,
    along,
    by_decider,
    fitted_index,
    outcome_dependent,
    plant_task,
    planting,
    policy_index,
)
from dcem.compare.results import TableComparison, estimates, shown_group_counts
from dcem.compare.run import _counts
from dcem.estimation.folds import within_budget
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.results import EVERYBODY
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError
from dcem.table.summary import shown_counts
from dcem.tasks import make_sinusoid

pytestmark = pytest.mark.usefixtures("linear_models")

QUICK = {"steps": 40, "hidden": (8,)}
LINEAR = ["y-obs:linear", "tested-only:linear"]


@pytest.fixture(scope="module")
def task() -> tuple[SelectiveLabels, np.ndarray]:
    made = make_sinusoid(
        k=2, testing_slope=5, stream="independent", random_state=0,
        n_train=900, n_validation=2, n_test=2,
    )  # fmt: skip
    return made.train, made.truth["train"]


@pytest.mark.parametrize(("visits", "together"), [(1, 16), (8, "withheld")])
def test_a_total_is_shown_where_the_table_itself_shows_it(visits, together) -> None:
    """Eight positive tests in each of two groups; or all of each are of one person."""
    y, row = np.zeros(800), np.arange(800)
    y[row % 400 < 8], y[row % 400 >= 100] = 1, np.nan
    person = np.where(y == 1, row // visits * visits, row)
    problem = SelectiveLabels.from_arrays(
        row[:, None] * 1.0, y, group=np.repeat(["A", "B"], 400), id=person
    )
    shown = shown_counts(problem, problem.counts()).to_numpy().tolist()
    assert [list(one.values()) for one in shown_group_counts(_counts(problem, None))] == shown
    assert shown[-1][-1] == together


def quick(problem: SelectiveLabels, **more: object) -> TableComparison:
    settings = {
        "n_folds": 2,
        "planted": 0,
        "n_resamples": 20,
        "n_members": 2,
        "params": QUICK,
        **more,
    }
    return compare_methods(problem, ["y-obs", "tested-only"], **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def comparison(task: tuple[SelectiveLabels, np.ndarray]) -> TableComparison:
    return quick(task[0], truth=task[1], planted=2)


class TestCompare:
    def test_one_repetition_is_refused_before_anything_is_fitted(
        self, task: tuple[SelectiveLabels, np.ndarray]
    ) -> None:
        said: list[str] = []
        with pytest.raises(InputError, match="gives no interval"):
            quick(task[0], planted=1, progress=said.append)
        assert said == []

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ({"truth": np.zeros(901)}, "901 values for 900 rows"),
            ({"truth": np.full(900, np.nan)}, "missing in 900 of 900"),
            ({"capacity": 10}, "`capacity` must lie between 0 and 1"),
            ({"threshold": 30}, "`threshold` must lie between 0 and 1"),
            ({"threshold": "a third"}, "`threshold` must lie between 0 and 1"),
            ({"bounds": "2"}, "`bounds` must be an odds ratio"),
            ({"planted": -1}, "`planted` must be 0, or a whole number from 2 on"),
            ({"planted": 2.5}, "`planted` must be 0, or a whole number from 2 on"),
            ({"test": np.zeros((3, 2))}, "test is a ndarray; it must be a SelectiveLabels"),
            ({"n_resamples": 0}, "`n_resamples` must be a whole number from 2 on"),
            ({"n_resamples": 99.5}, "`n_resamples` must be a whole number from 2 on"),
            ({"validation": True}, "without `test`"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, task, given, match) -> None:
        given = given | ({"validation": task[0]} if "validation" in given else {})
        with pytest.raises(InputError, match=match):
            quick(task[0], **given)

    def test_people_to_judge_by_have_the_features_of_the_table(self, task) -> None:
        problem = task[0]
        fewer = replace(problem, X=problem.X[:, :1], feature_names=("age",))
        with pytest.raises(InputError, match="test has 1 features, but X has 2"):
            quick(problem, test=fewer)
        named = [replace(problem, feature_names=names) for names in (("a", "b"), ("b", "a"))]
        with pytest.raises(InputError, match=r"features of test \(b, a\) are not those of the tr"):
            quick(named[0], test=named[1])

    def test_truth_in_another_order_is_noticed(self, task) -> None:
        with (
            pytest.warns(DataWarning, match="differs from the test result"),
            pytest.raises(InputError, match="No method"),
        ):
            compare_methods(task[0], [], truth=task[1][::-1])

    def test_one_method_may_be_named_and_params_go_before_members(self, task) -> None:
        given = {"n_folds": 2, "planted": 0, "n_resamples": 2, "params": {"n_members": 1}}
        found = compare_methods(task[0], "tested-only:linear", **given)
        assert [(one.name, one.members) for one in found.methods] == [("tested-only:linear", 1)]

    def test_every_number_has_an_interval_or_a_reason(self, comparison: TableComparison) -> None:
        assert [target.key for target in comparison.targets] == ["tested", "ipw", "dr", "truth"]
        for method in comparison.methods:
            for judged in method.judgements.values():
                for metric, _, found in estimates(judged):
                    if found.estimable:
                        assert found.low <= found.value <= found.high, metric
                    else:
                        assert found.reason

    def test_estimates_are_near_the_truth(self, comparison: TableComparison) -> None:
        for method in comparison.methods:
            known = method.judgements["truth"].auc.value
            assert method.judgements["dr"].auc.value == pytest.approx(known, abs=0.06)

    def test_differences_are_not_counted_from_the_network_of_the_tested(
        self, comparison: TableComparison
    ) -> None:
        reference, other = comparison.methods
        assert comparison.reference == reference.name == "y-obs"
        assert reference.judgements["dr"].auc_gain is None
        gain = other.judgements["dr"].auc_gain
        assert gain is not None
        assert gain.value == pytest.approx(
            other.judgements["dr"].auc.value - reference.judgements["dr"].auc.value
        )

    def test_what_is_judged_is_the_ensemble_that_is_delivered(
        self, comparison: TableComparison
    ) -> None:
        assert [method.members for method in comparison.methods] == [2, 2]

    def test_rates_by_group_when_acting(self, comparison: TableComparison) -> None:
        judged = comparison.methods[0].judgements["truth"].when_acting
        assert set(judged) == {"true_positive_rate", "precision", "share_acted_on"}
        shares = judged["share_acted_on"]
        sizes = {group.name: group.people for group in comparison.groups}
        acted = sum(shares[name].value * size for name, size in sizes.items())
        assert acted / sum(sizes.values()) == pytest.approx(0.1, abs=0.01)
        assert shares[EVERYBODY].value == pytest.approx(acted / sum(sizes.values()))

    def test_given_splits_are_judged_by_the_truth_of_the_last(
        self, task: tuple[SelectiveLabels, np.ndarray]
    ) -> None:
        problem, truth = task
        here = np.arange(len(problem))
        parts = [problem.subset(here % 3 == k) for k in range(3)]
        known = {
            name: truth[here % 3 == k] for k, name in enumerate(("train", "validation", "test"))
        }
        found = compare_methods(
            parts[0],
            ["tested-only", "y-model"],
            truth=known,
            validation=parts[1],
            test=parts[2],
            planted=0,
            n_resamples=20,
            n_members=1,
            params=QUICK,
        )
        assert [method.uses_truth for method in found.methods] == [False, True]
        assert found.standings["truth"].best == "tested-only"  # who is told the truth takes no part
        assert sum(group.people for group in found.groups) == len(parts[0])
        assert found.people == len(parts[2])

    def test_no_row_budget_is_told_where_people_to_judge_by_are_given(self, task) -> None:
        problem, _ = task
        problem, test = (problem.subset(np.arange(900) % 2 == k) for k in (0, 1))
        found = compare_methods(
            problem, LINEAR, test=test, max_rows=100, planted=0, n_resamples=20, n_members=1
        )
        assert found.configuration["row budget"] == "none"
        assert found.rows_used == len(problem)
        (best,) = (one for one in found.findings if one.key == "best")
        assert "do not include chance in training" in best.text  # with single fits

    def test_models_of_one_group_may_be_compared(self, task) -> None:
        names = ["group-0-only:linear", "group-1-only:linear"]
        found = compare_methods(task[0], names, n_folds=2, planted=2, n_resamples=20, n_members=1)
        assert [one.name for one in found.methods] == names

    def test_frame_holds_everything(self, comparison: TableComparison) -> None:
        frame = comparison.to_frame()
        assert set(frame["method"]) == {"y-obs", "tested-only", CEILING}
        assert {"auc", "roc_gap", "net_benefit", "precision_at_capacity"} <= set(frame["metric"])

    def test_what_it_says_of_planted_outcomes(self, comparison: TableComparison) -> None:
        assert comparison.planted is not None
        assert {score.family for score in comparison.planted.scores} == {f.name for f in FAMILIES}
        keys = [finding.key for finding in comparison.planted.findings]
        assert keys.count("planted") == len(FAMILIES)
        assert keys.count("planted-harm") == sum(bool(family.violates) for family in FAMILIES) == 3

    def test_truth_of_the_untested_moves_nothing_else(
        self, task: tuple[SelectiveLabels, np.ndarray]
    ) -> None:
        problem, truth = task
        other = np.where(problem.tested, truth, 1 - truth)
        one, two, without = (
            compare_methods(
                problem, LINEAR, truth=known, n_folds=2, planted=0, n_resamples=20, n_members=1
            ).to_frame()
            for known in (truth, other, None)
        )
        rest = one["target"] != "truth"
        pd.testing.assert_frame_equal(one[rest], two[rest])
        pd.testing.assert_frame_equal(
            one[rest].reset_index(drop=True), without.reset_index(drop=True)
        )
        assert not one[~rest]["value"].equals(two[~rest]["value"])

    def test_without_groups_and_with_weights(
        self, task: tuple[SelectiveLabels, np.ndarray]
    ) -> None:
        problem, _ = task
        alone = SelectiveLabels.from_arrays(
            problem.X, problem.y_obs, weight=np.random.default_rng(0).uniform(0.5, 2, len(problem))
        )
        found = quick(alone)
        judged = found.methods[0].judgements["dr"]
        assert judged.auc.estimable
        assert not judged.roc_gap.estimable
        assert judged.auc_differences == {}
        keys = {finding.key for finding in found.findings}
        assert {"tested", "best"} <= keys
        assert not keys & {"groups-alike", "groups-differ", "curves-differ"}

    def test_rows_of_weight_0_are_nobody(self, task: tuple[SelectiveLabels, np.ndarray]) -> None:
        problem, truth = task
        weight = (np.random.default_rng(0).random(len(problem)) < 0.8) * 1.0
        weighted = replace(problem, weight=weight)
        with pytest.warns(DataWarning, match="have a weight of 0 and are left out"):
            found = quick(weighted, truth=truth)
        plain = quick(weighted.subset(weight > 0), truth=truth[weight > 0])
        assert sum(group.people for group in found.groups) == weight.sum()
        pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame())

    def test_no_overlap_is_said(self) -> None:
        made = make_sinusoid(
            stream="independent", random_state=0, n_train=2000, n_validation=2, n_test=2
        )  # the published testing rule, slope 30
        found = quick(made.train)
        assert not found.overlap.estimable
        assert not found.methods[0].judgements["dr"].auc.estimable
        assert found.methods[0].judgements["tested"].auc.estimable
        assert "no-overlap" in {warning.key for warning in found.warnings}
        assert set(found.standings) == {"tested"}

    def test_a_method_that_needs_the_truth_is_refused(
        self, task: tuple[SelectiveLabels, np.ndarray]
    ) -> None:
        with pytest.raises(InputError, match="everybody's true outcome"):
            compare_methods(task[0], ["y-model"])
        with pytest.raises(InputError, match=r"Unknown method 'dcme'.*'dcem'"):
            compare_methods(task[0], ["dcme"])

    def test_row_budget_takes_whole_people(self) -> None:
        person = np.repeat(np.arange(100), 3)
        problem = SelectiveLabels.from_arrays(
            np.random.default_rng(0).normal(size=(300, 1)),
            np.where(person % 2, np.nan, person % 4 == 0),
            id=person,
        )
        rows = within_budget(problem, 120, 0)
        assert len(rows) == 120
        assert set(np.bincount(person[rows], minlength=100)) == {0, 3}
        assert np.all(np.diff(rows) > 0)
        with pytest.raises(InputError, match="`max_rows` must be 100 or more; got 10"):
            within_budget(problem, 10, 0)

    def test_a_group_that_only_the_draw_has_too_few_of_is_told_so(self) -> None:
        rng = np.random.default_rng(0)
        X, group = rng.normal(size=(3000, 2)), np.repeat(["a", "b", "c"], [1500, 1300, 200])
        y = np.where(rng.random(3000) < 0.4, rng.random(3000) < 0.5, np.nan)
        problem = SelectiveLabels.from_arrays(X, y, group=group)
        found = compare_methods(
            problem, LINEAR, max_rows=300, n_folds=2, planted=0, n_resamples=20, n_members=1
        )
        told = {one.key: one for one in found.warnings}
        assert told["small-draw"].groups == ("c",)
        assert "max_rows" in told["small-draw"].remedy
        assert "small-groups" not in told
        assert told["reach"].values["rows"] == 300


class TestPlanted:
    @pytest.fixture
    def table(self) -> tuple[SelectiveLabels, Nuisances]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 12))
        X[rng.random(X.shape) < 0.05] = np.nan
        group = rng.integers(2, size=3000)
        e = np.where(group == 0, 0.4, 0.2)
        y = np.where(rng.random(3000) < e, rng.random(3000) < 0.3, np.nan)
        outcome = 1 / (1 + np.exp(1 - 1.5 * np.nan_to_num(X[:, 0])))
        problem = SelectiveLabels.from_arrays(X, y, group=group)
        return problem, Nuisances(e, outcome, ())  # type: ignore[arg-type]

    @pytest.mark.parametrize("family", [family.name for family in FAMILIES])
    def test_as_frequent_and_as_tested_as_the_real_one(
        self, table: tuple[SelectiveLabels, Nuisances], family: str
    ) -> None:
        problem, models = table
        indices = fitted_index(problem, models), policy_index(problem, models)
        made = plant_task(family, problem, models, indices, np.random.default_rng(1))
        assert made.truth.mean() == pytest.approx(models.outcome.mean(), abs=0.06)
        for code, rate in ((0, 0.4), (1, 0.2)):
            mine = made.train.group == code
            assert made.train.tested[mine].mean() == pytest.approx(rate, abs=0.06)
        assert not set(made.train.row) & set(made.test.row)

    @pytest.mark.parametrize("family", [family.name for family in FAMILIES])
    def test_no_outcome_depends_on_what_affects_testing_alone(self, table, family) -> None:
        problem, models = table
        rng = np.random.default_rng(2)
        models = replace(models, testing=1 / (1 + np.exp(-np.nan_to_num(problem.X[:, 1]))))
        risks = []
        for other in (problem.X[:, 1], rng.normal(size=len(problem))):
            X = np.column_stack([problem.X[:, 0], other, problem.X[:, 2:]])
            told = replace(problem, X=X, testing_only=(problem.feature_names[1],))
            indices = fitted_index(told, models), policy_index(told, models)
            made = plant_task(family, told, models, indices, np.random.default_rng(1))
            risks.append(made.risk)
        np.testing.assert_array_equal(*risks)
        alone = replace(problem, testing_only=problem.feature_names)
        assert np.ptp(fitted_index(alone, models)) == 0

    def test_planted_tests_depend_on_who_decides_as_real_ones_do(self, table) -> None:
        problem, models = table
        rng = np.random.default_rng(3)
        decider = rng.integers(5, size=len(problem))
        rate = np.array([0.1, 0.2, 0.3, 0.5, 0.7])[decider]
        y = np.where(rng.random(len(problem)) < rate, problem.y_imputed, np.nan)
        told = SelectiveLabels.from_arrays(problem.X, y, decider=decider)
        models = replace(models, testing=np.full(len(y), 0.36))
        moved = by_decider(told, models.testing)
        np.testing.assert_allclose(moved, rate, atol=0.05)
        alike = replace(told, decider=rng.permutation(decider))
        np.testing.assert_allclose(by_decider(alike, models.testing), 0.36, atol=0.03)
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "dcem.compare.planted.fit_and_score",
                lambda names, parts, *_, **__: seen.extend(parts),
            )
            planting(told, models, ["tested-only:linear"], repetitions=2)
        train = seen[0].train
        rates = [train.tested[train.decider == code].mean() for code in range(5)]
        np.testing.assert_allclose(rates, [0.1, 0.2, 0.3, 0.5, 0.7], atol=0.1)

    def test_outcomes_are_planted_where_no_feature_varies(self, table) -> None:
        problem, models = table
        constant = replace(problem, X=np.ones_like(problem.X))
        index, rng = np.zeros(len(problem)), np.random.default_rng(1)
        made = plant_task("interactions", constant, models, (index, index), rng)
        assert made.risk.std() == pytest.approx(0, abs=1e-9)

    def test_outcome_dependent_testing_has_its_odds_ratio(self) -> None:
        testing, y = np.full(1000, 0.3), np.arange(1000) % 2.0
        changed = outcome_dependent(testing, y, np.zeros(1000, int))
        odds = [p / (1 - p) for p in (changed[1], changed[0])]
        assert odds[0] / odds[1] == pytest.approx(GAMMA)
        assert changed.mean() == pytest.approx(0.3)

    def test_the_planted_outcome_can_be_found(
        self, table: tuple[SelectiveLabels, Nuisances]
    ) -> None:
        problem, models = table
        method = "tested-only:linear"
        found = planting(problem, models, [method], repetitions=2, max_rows=800)()
        scores = {(s.method, s.family): s.auc.value for s in found.scores}
        assert 0.6 < scores[method, "sharpened"] < scores[CEILING, "sharpened"] + 0.02

    def test_one_repetition_is_refused(self, table: tuple[SelectiveLabels, Nuisances]) -> None:
        with pytest.raises(InputError, match="2 or more"):
            planting(*table, ["tested-only"], repetitions=1)

    def test_a_drawn_outcome_goes_along_with_testing_as_the_fitted_one_does(self) -> None:
        rng = np.random.default_rng(0)
        policy, drawn = rng.normal(size=(2, 5000))
        fitted = 0.9 * policy + 0.4 * rng.normal(size=5000)
        mixed = along(drawn, policy, fitted)
        correlation = np.corrcoef([mixed, policy, fitted])
        assert correlation[0, 1] == pytest.approx(correlation[1, 2])
        assert np.std(mixed) == pytest.approx(1)


def test_options_have_the_defaults_of_the_function() -> None:
    defaults = {name: one.default for name, one in signature(compare_methods).parameters.items()}
    options = {one.name: one.default for one in load_command("compare", COMMANDS["compare"]).params}
    names = {"folds": "n_folds", "members": "n_members", "seed": "random_state"}
    names |= {name: name for name in ("max_rows", "planted", "floor", "threshold", "capacity")}
    assert {one: options[one] for one in names} == {a: defaults[b] for a, b in names.items()}


class TestCommand:
    @pytest.fixture
    def people(self, tmp_path: Path) -> Path:
        made = make_sinusoid(
            k=2, testing_slope=5, stream="independent", random_state=0,
            n_train=600, n_validation=2, n_test=2,
        )  # fmt: skip
        frame = made.to_frame().query("split == 'train'").drop(columns=["split", "tested"])
        frame["recorded_later"] = frame["label"].map({0.0: "no", 1.0: "yes"})
        frame.to_csv(tmp_path / "people.csv", index=False)
        return tmp_path / "people.csv"

    def run(self, people: Path, *more: object) -> Result:
        return CliRunner().invoke(
            app,
            [
                "compare", str(people), "--label", "label", "--group", "group",
                "--method", "y-obs:linear,tested-only:linear", "--folds", "2", "--planted", "0",
                "--members", "1",
                *map(str, more),
            ],
            env={"COLUMNS": "200"},
        )  # fmt: skip

    def test_from_a_file_to_a_report(self, people: Path, tmp_path: Path) -> None:
        result = self.run(
            people, "--exclude", "recorded_later", "--out", tmp_path / "out",
            "--report", tmp_path / "out" / "report.html",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert "everybody, estimated" in result.output
        written = sorted(path.name for path in (tmp_path / "out").iterdir())
        assert written == [
            "comparison.csv", "comparison.json", "comparison.md", "report.html", "report.md",
        ]  # fmt: skip
        table = pd.read_csv(tmp_path / "out" / "comparison.csv")
        assert set(table["target"]) == {"tested", "ipw", "dr"}

    def test_a_report_alone_tells_roles_and_doubtful_columns(
        self, people: Path, tmp_path: Path
    ) -> None:
        result = self.run(people, "--positive", "1", "--report", tmp_path / "new" / "c.html")
        assert result.exit_code == 0, result.output
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["c.html", "c.md"]
        text = (tmp_path / "new" / "c.md").read_text()
        _, made = text.split("## How it was made")
        for line in ("- file: people.csv", "- label: label", "- positive: 1", "- group: group"):
            assert f"\n{line}\n" in made
        assert "Column 'recorded_later' may have been recorded after the decision" in text
        assert "recorded_later" in (tmp_path / "new" / "c.html").read_text()

    def test_places_are_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        absent = tmp_path / "absent.csv"
        (tmp_path / "file").write_text("precious")
        for option, place, said in (
            ("--report", tmp_path, "is a folder"),
            ("--report", tmp_path / "file" / "r.html", "file is a file"),
            ("--report", tmp_path / "r.md", "Name the page r.html"),
            ("--out", tmp_path / "file", "file is a file"),
        ):
            result = self.run(absent, option, place)
            assert result.exit_code == 2
            assert said in " ".join(result.output.split())
        assert "absent.csv" in self.run(absent, "--report", tmp_path / "a" / "b" / "r.html").output
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_an_oracle_is_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(
            app, ["compare", str(tmp_path / "none.csv"), "--label", "y", "--method", "y-model"]
        )
        assert result.exit_code == 2
        assert "everybody's true outcome" in result.output
