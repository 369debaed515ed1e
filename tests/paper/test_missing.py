"""What is not there is said: nothing fails, nothing is invented."""

import pandas as pd
import pytest

from dcem.paper import Recorded, Runs, drawing, find, reproduce
from dcem.paper.sources import Need
from dcem.table.messages import InputError


def test_an_empty_folder_gives_the_published_side_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "DPI", 60)  # nobody looks at them
    (tmp_path / "empty").mkdir()
    some = find(["figure2", "figure3", "figure4", "overlap", "calibration", "salience", "figure11"])
    some += find(["ablation", "summary", "claims", "robustness"])
    outcomes = reproduce(some, Recorded(tmp_path / "empty"), tmp_path / "out")
    by_id = {one.exhibit.id: one for one in outcomes}
    assert not any(one.origins for one in outcomes)
    assert by_id["figure2"].files  # the paper's points
    assert any("no shown.csv" in note for note in by_id["figure2"].notes)
    assert not by_id["figure11"].files  # no side has numbers
    assert any("not carried" in note for note in by_id["figure11"].notes)
    assert not by_id["figure3"].files
    assert any("dcem benchmark run grid" in note for note in by_id["figure3"].notes)
    numbers = pd.read_csv(tmp_path / "out" / "figure2-main.csv")
    assert numbers["ours_median"].isna().all()
    assert len(numbers) == 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("figur2", "Did you mean 'figure2'"),
        ("figure34", "Did you mean 'figure"),
        ("overlop", "Did you mean 'overlap'"),
        ("qqq", "'dcem reproduce list' shows all"),
        ("figure1", "holds no results: it is the causal model"),
        ("figure6", "dcem sepsis build"),
    ],
)
def test_unknown_names_get_the_nearest(name, message):
    with pytest.raises(InputError, match=message):
        find([name])


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"No folder .*nowhere"):
        Recorded(tmp_path / "nowhere")


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(InputError, match="png, svg, pdf"):
        reproduce(find(["figure5"]), Recorded(tmp_path), tmp_path, formats=["bmp"])
    assert not list(tmp_path.iterdir())


def test_sepsis_without_a_cohort_draws_the_published_side(tmp_path):
    (one,) = reproduce(find(["figure4"]), Runs(tmp_path), tmp_path)
    assert one.files
    assert any("sepsis build" in note for note in one.notes)


def test_runs_are_kept_and_used_again(tmp_path):
    (tmp_path / "small.toml").write_text(
        "[[tasks]]\nn_train = 200\nn_validation = 200\nn_test = 200\nphase = [0, 30]\n"
        'k = [1, 2]\nstream = "independent"\n'
        '[[methods]]\nname = ["y-obs", "tested-only"]\nparams = {steps = 3}\n'
    )
    need = Need(str(tmp_path / "small.toml"), (), {"k": 2.0}, ("y-obs",))
    source = Runs(tmp_path / "store", device="cpu")
    first, second = source.rows(need), source.rows(need)
    assert len(first.rows) == 2  # one setting and one method of it, two phases
    assert set(first.rows["method"]) == {"y-obs"}
    assert set(first.rows["k"]) == {2.0}
    assert list(first.rows["finished"]) == list(second.rows["finished"])  # not computed again
