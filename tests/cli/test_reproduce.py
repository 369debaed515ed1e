"""`dcem reproduce` as a shell sees it."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_a_figure_from_recorded_results(inside, tmp_path):
    out = tmp_path / "out"
    ended = inside("reproduce", "figure2", "--from", RESULTS, "--out", out, "--format", "svg")
    assert ended.returncode == 0, ended.stderr
    assert f"figure2: {out}/figure2-main.svg" in ended.stdout
    assert (out / "figure2-main.svg").read_text().startswith("<?xml")
    header = (out / "figure2-main.csv").read_text().partition("\n")[0]
    assert header.startswith("method,metric,published_median")
    assert "## figure2" in (out / "README.md").read_text()


def test_the_list_says_where_results_are(inside, tmp_path):
    ended = inside("reproduce", "list", "--from", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("not recorded") == 37
    assert "figure6" in ended.stdout
    made = inside("reproduce", "list").stdout
    assert "causal-estimators" in made


def test_slips_get_one_clear_line(inside, tmp_path):
    for arguments, message in (
        (("figur2",), "Did you mean 'figure2'"),
        (("figure2", "--from", "absent"), "No folder absent"),
        (("figure5", "--from", ".", "--format", "bmp"), "--format must be one of png, svg, pdf"),
    ):
        ended = inside("reproduce", *arguments, "--out", "x", cwd=tmp_path)
        assert ended.returncode == 2
        assert message in ended.stderr
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "x").exists()
