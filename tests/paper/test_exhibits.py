"""Every exhibit draws, and the numbers beside a picture are those of the results."""

import numpy as np
import pandas as pd
import pytest
from choices import some

from dcem.benchmark.read import results
from dcem.paper import EXHIBITS, Recorded, drawing, find, published, reproduce

IDS = [exhibit.id for exhibit in EXHIBITS]
# Figures 11 to 33 are two pictures at 23 settings: four of them are drawn every time.
ALIKE = {f"figure{n}" for n in range(11, 34)} - {"figure19", "figure26", "figure27", "figure32"}
EVERY_TIME = [id for id in IDS if id not in ALIKE]


@pytest.fixture(scope="module")
def drawn(request, recorded, tmp_path_factory):
    out = tmp_path_factory.mktemp("drawn")
    wanted = EXHIBITS if request.config.getoption("--slow") else find(EVERY_TIME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "DPI", 60)  # nobody looks at them
        outcomes = reproduce(wanted, Recorded(recorded), out)
    return out, {one.exhibit.id: one for one in outcomes}


def picture(id, folder):
    """One exhibit from a folder of results."""
    (exhibit,) = find([id])
    return exhibit.draw(*(Recorded(folder).rows(need) for need in exhibit.needs))


def draw(id, folder):
    return picture(id, folder).figure


def test_the_catalogue_has_every_figure_and_table_of_the_paper():
    # 1 is a drawing and 6 the flow of the cohort
    figures = [f"figure{n}" for n in (2, 3, 4, 5, 7, 8, 9, 10, *range(11, 34))]
    assert set(IDS) == {*figures, "table1", "table2", "table3", "table4"} | {
        "summary", "claims", "robustness",
    }  # fmt: skip
    assert len(find(["simulation"])) == 15
    assert len(find(["sepsis"])) == 8
    assert [one.id for one in find(["tables", "k1-qt2", "figure19"])][-1] == "figure19"
    assert len(find(["tables", "k1-qt2", "figure19"])) == 5  # named twice, drawn once


@pytest.mark.parametrize("id", some(IDS, EVERY_TIME))
def test_every_exhibit_draws_with_numbers_beside_it(drawn, id):
    out, outcomes = drawn
    one = outcomes[id]
    picture, *tables = one.files
    assert picture == out / f"{one.exhibit.stem}.png"
    assert picture.stat().st_size > 4_000
    assert tables
    for path in tables:
        assert path.suffix == ".csv"
        assert len(pd.read_csv(path)), path
    assert one.caption
    needs_ours = bool(one.exhibit.needs)
    # the tiny cohort was fitted at k 1/4 and 4 only: other sepsis figures show the published side
    published_only = id in {f"figure{n}" for n in (27, 28, 29, 30, 31, 33)}
    assert bool(one.origins) == (needs_ours and not published_only)
    assert f"({picture.name})" in (out / "README.md").read_text()


def test_the_numbers_of_a_figure_are_those_of_the_results(drawn, recorded):
    out, _ = drawn
    rows = results(recorded / "shown.csv")
    rows = rows[np.isclose(rows["k"], 1) & np.isclose(rows["q_t"], 2)]
    written = pd.read_csv(out / "figure19-k1-qt2.csv").set_index(["method", "metric"])
    for method, part in rows.groupby("method"):
        ours = written.loc[(method, "auc")]
        assert ours["ours_median"] == pytest.approx(part["auc"].median(), abs=1e-5)
        assert ours["ours_worst"] == pytest.approx(part["auc"].min(), abs=1e-5)
        gap = written.loc[(method, "roc_gap")]
        assert gap["ours_worst"] == pytest.approx(part["roc_gap_grid"].max(), abs=1e-5)
        assert gap["ours_n"] == 3
    theirs = published.figures().query("k == 1 and q_t == 2 and method == 'dcem'")
    for row in theirs.itertuples():
        assert written.loc[("dcem", row.metric), "published_median"] == row.median
    points = pd.read_csv(out / "figure19-k1-qt2-points.csv")
    mine = points[(points["source"] == "ours") & (points["metric"] == "auc")]
    pd.testing.assert_series_equal(
        mine.set_index(["method", "phase"])["value"].sort_index(),
        rows.set_index(["method", "phase"])["auc"].sort_index(),
        check_names=False, rtol=1e-5,
    )  # fmt: skip


def test_the_numbers_of_a_table_are_those_of_the_results_and_of_the_paper(drawn, recorded):
    out, _ = drawn
    rows = results(recorded / "tables.csv").query("benchmark == 'temperature'")
    written = pd.read_csv(out / "table3-temperature.csv", dtype={"row": str})
    assert list(written["row"].unique()) == ["0.01", "0.1", "1", "10", "100"]
    one = written.set_index(["row", "metric"]).loc[("0.1", "auc")]
    assert one["published_median"] == 0.791
    assert one["ours_median"] == pytest.approx(rows.query("label == '0.1'")["auc"].median())


def test_windows_of_the_tradeoff_count_every_fit_once(drawn, recorded):
    out, _ = drawn
    rows = results(recorded / "grid.csv").query("seed == 0 and method == 'dcem'")
    written = pd.read_csv(out / "figure3-tradeoff.csv").query("method == 'dcem'")
    inside = rows["auc"].between(0.675, 1, inclusive="left").sum()
    assert written["n"].sum() == inside
    pool = pd.read_csv(out / "figure3-tradeoff-points.csv").query("method == 'dcem'")
    assert len(pool) == len(rows)


def test_overlap_has_every_slope_and_the_published_row_at_the_usual_one(drawn):
    out, _ = drawn
    written = pd.read_csv(out / "figure7-overlap.csv")
    assert sorted(written["slope_factor"].unique()) == [0.25, 1, 4]
    usual = written[written["slope_factor"] == 1].set_index(["method", "metric"])
    assert usual.loc[("ipw", "auc"), "published_median"] == 0.829
    assert written[written["slope_factor"] != 1]["published_median"].isna().all()


def test_artificial_patients_are_watermarked_and_no_evidence(recorded, drawn):
    from dcem.paper.exhibits.catalogue import Need

    _, outcomes = drawn
    for id in ("figure4", "figure10", "figure26", "figure32"):
        assert any("artificial patients" in note for note in outcomes[id].notes), id
    found = Recorded(recorded).rows(Need("sepsis", ("sepsis_artificial",), {"k": 4.0, "q_t": 1.5}))
    assert found.artificial
    (exhibit,) = find(["figure4"])
    for id in ("figure4", "figure10"):
        (exhibit,) = find([id])
        for ax in exhibit.draw(found).figure.axes:
            assert "ours: artificial patients" in [text.get_text() for text in ax.texts]
    claims = pd.read_csv(drawn[0] / "claims.csv")
    assert claims[claims["where"].str.contains("Figure 4")]["ours"].isna().all()


def test_only_our_points_are_called_artificial(recorded):
    """The words across a panel are in the colour of our points; published ones have another."""
    from matplotlib.colors import to_hex

    figure = draw("figure4", recorded)
    for ax in figure.axes:
        (words,) = [text for text in ax.texts if "artificial" in text.get_text()]
        sides = {
            marker: {
                to_hex(line.get_markeredgecolor())
                for line in ax.lines
                if line.get_marker() == marker
            }
            for marker in "oD"
        }
        assert sides["o"] == {to_hex(words.get_color())}
        assert sides["D"].isdisjoint(sides["o"])
    across = [text for text in figure.texts if text.get_text() != figure.get_supxlabel()]
    assert not any("artificial" in text.get_text() for text in across)
    for ax in draw("figure10", recorded).axes:  # ours is left of the line at 1.06
        figure = ax.figure
        figure.draw_without_rendering()
        (words,) = [text for text in ax.texts if "artificial" in text.get_text()]
        box = words.get_window_extent()
        line = ax.transData.transform((1.06, 0))[0]
        assert ax.bbox.x0 <= box.x0
        assert box.x1 <= line


def test_methods_cut_short_are_starred_and_told(drawn, recorded):
    """The tiny cohort was fitted with three steps: no picture of it may look like the paper's."""
    out, outcomes = drawn
    for id in ("figure4", "figure10"):
        assert any("cut short" in note and "DCEM" in note for note in outcomes[id].notes), id
    params = pd.read_csv(out / "figure4-sepsis-main.csv").set_index("method")["ours_params"]
    assert "max_iter" in params["dcem"].iloc[0]
    assert params["sar-em"].isna().all()  # published only
    salience = pd.read_csv(out / "figure10-salience.csv").query("source == 'ours'")
    assert salience["ours_params"].notna().all()
    (exhibit,) = find(["figure4"])
    figure = exhibit.draw(*(Recorded(recorded).rows(need) for need in exhibit.needs)).figure
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "DCEM *" in names
    assert "SAR-EM" in names
    key = figure.get_supxlabel()
    assert key.startswith("◇ published     ● ours, on artificial patients")  # only ours are
    assert key.endswith("* ours cut short")
    assert any(note.startswith("Not recorded by us: ") for note in outcomes["figure4"].notes)


def test_tables_with_and_without_the_twelfth_boundary(drawn, recorded):
    out, outcomes = drawn
    rows = results(recorded / "tables.csv").query("benchmark == 'temperature' and label == '0.1'")
    fewer = pd.read_csv(out / "table3-temperature-eleven.csv", dtype={"row": str})
    one = fewer.set_index(["row", "metric"]).loc[("0.1", "auc")]
    assert one["ours_median"] == pytest.approx(rows.query("phase > 0")["auc"].median(), abs=1e-5)
    assert one["ours_n"] == len(rows) - 1
    for id in ("table1", "table3"):
        assert any("11 boundaries" in note for note in outcomes[id].notes), id
    assert not (out / "table2-causal-estimators-eleven.csv").exists()


def test_a_key_names_only_what_is_drawn(recorded):
    """The tables of the paper have no points, so no diamonds."""
    for id, words in (("table3", "grey: published"), ("figure2", "◇ published")):
        (exhibit,) = find([id])
        figure = exhibit.draw(*(Recorded(recorded).rows(need) for need in exhibit.needs)).figure
        assert figure.get_supxlabel().startswith(words)


def test_titles_write_fractions_as_the_paper_does():
    titles = {exhibit.id: exhibit.title for exhibit in EXHIBITS}
    assert titles["figure11"] == "Simulation at q_y 1/2, k 1/3, q_t 1/2, all methods"
    assert titles["figure26"] == "Sepsis at k 1/4, q_t 3/2"
    assert not any("0." in title for title in titles.values())


def test_thirds_are_0_333_in_file_names():
    """0.3 would be another setting."""
    names = {exhibit.id: exhibit.name for exhibit in EXHIBITS}
    assert names["figure11"] == "k0.333-qt0.5"
    assert names["figure27"] == "sepsis-k0.333"
    assert names["figure26"] == "sepsis-k0.25"
    assert [one.id for one in find(["k0.333-qt2"])] == ["figure13"]


def test_a_pool_tells_what_it_leaves_out_and_moves_no_fit(recorded, tmp_path):
    """k 1/10 and 4 are recorded and not pooled; gaps above .2 have bars of their own."""
    grid = results(recorded / "grid.csv")
    one = grid[np.isclose(grid["k"], 1)]
    far = grid.assign(roc_gap=0.25, auc=0.7)
    far = far.drop(columns="roc_gap_grid", errors="ignore")
    pd.concat([far, far[np.isclose(far["k"], 1)].assign(k=0.1), one.assign(k=4.0)]).to_csv(
        tmp_path / "grid.csv", index=False
    )
    figure3 = picture("figure3", tmp_path)
    assert "15 of the 21 settings" in figure3.caption
    assert "k 1/10 and 4 are left out" in figure3.caption
    ax = figure3.figure.axes[0]
    assert ax.get_xlim()[1] > 0.25
    for patch in ax.patches:
        assert patch.get_path().vertices[:, 0].max() > 0.25
    (key,) = figure3.figure.legends
    words = [text.get_text() for text in key.get_texts()]
    assert words == ["mean of ours", "mean printed in the paper"]


def test_a_number_stands_beside_its_line(recorded):
    """Also where one side is alone, as algorithm 1 in table 4."""
    for ax in draw("table4", recorded).axes:
        heights = {
            line.get_ydata()[0]
            for line in ax.lines
            if len(line.get_ydata()) == 2 and line.get_ydata()[0] == line.get_ydata()[1]
        }
        numbers = [text for text in ax.texts if "[" in text.get_text()]
        assert len(numbers) == 5
        for text in numbers:
            assert min(abs(text.get_position()[1] - height) for height in heights) < 1e-9


def test_a_picture_says_which_side_is_not_there(recorded, tmp_path):
    key = draw("figure11", recorded).get_supxlabel()
    assert key.startswith("published: not at hand     ● ours")
    assert "▶◀ worst case" in key  # ours are filled
    assert "▷" not in key
    assert "▷◁ ▶◀ worst case" in draw("figure2", recorded).get_supxlabel()
    assert "no ●: not recorded by us" in draw("figure4", recorded).get_supxlabel()
    assert "ours: not recorded" in draw("figure4", tmp_path).get_supxlabel()


def test_a_method_has_one_look_in_all_pictures(recorded):
    def looks(figure):
        (key,) = figure.legends
        names = [text.get_text().removesuffix(" *") for text in key.get_texts()]
        handles = key.legend_handles
        return {n: (h.get_marker(), h.get_color()) for n, h in zip(names, handles, strict=True)}

    overlap, salience, seeds = (
        looks(draw(id, recorded)) for id in ("figure7", "figure10", "robustness")
    )
    for name in ("DCEM", "tested-only"):
        assert overlap[name] == salience[name] == seeds[name]
    assert salience["y-obs"] == seeds["y-obs"]
    assert len({marker for marker, _ in salience.values()}) == len(salience)


def test_what_marks_mean_is_in_the_picture(recorded):
    summary = draw("summary", recorded)
    assert "hollow: it says nothing of this setting" in summary.get_supxlabel()
    assert "blank: no numbers at hand" in summary.get_supxlabel()
    checked = picture("summary", recorded).numbers[""]
    marks = [text.get_text() for text in summary.axes[0].texts]
    assert sum(mark in "△○▽" for mark in marks) == (checked["paper_says"] == "").sum() > 0
    (key,) = draw("robustness", recorded).legends
    assert "with zero: unclear" in [text.get_text() for text in key.get_texts()]
    overlap = draw("figure7", recorded)
    assert "q_y 1/2, k 1, q_t 2" in overlap.get_suptitle()
    assert "multiple of the usual 30" in overlap.axes[0].get_xlabel()
    assert draw("figure8", recorded).get_suptitle()
    salience = draw("figure10", recorded).axes[1]
    assert "chance" in [text.get_text() for text in salience.texts]


@pytest.mark.parametrize("id", ["figure3", "figure9"])
def test_lines_of_means_end_below_the_labels(recorded, id):
    (exhibit,) = find([id])
    figure = exhibit.draw(*(Recorded(recorded).rows(need) for need in exhibit.needs)).figure
    figure.draw_without_rendering()
    for ax in figure.axes:
        labels = min(text.get_window_extent().y0 for text in ax.texts)
        lines = [line.get_window_extent().y1 for line in ax.lines]
        assert all(top < labels for top in lines)


def test_labels_of_the_calibration_are_off_its_curves_and_on_the_paper(recorded):
    (exhibit,) = find(["figure8"])
    figure = exhibit.draw(*(Recorded(recorded).rows(need) for need in exhibit.needs)).figure
    figure.draw_without_rendering()
    for ax in figure.axes:
        assert all(text.get_window_extent().y0 >= ax.bbox.y1 for text in ax.texts)
        assert ax.xaxis.label.get_window_extent().y0 >= 0
