"""`dcem methods`."""

from typer.testing import CliRunner

from dcem.cli import app
from dcem.methods.registry import METHODS

run = CliRunner().invoke


def test_all_methods_are_listed():
    out = run(app, ["methods"], env={"COLUMNS": "160"})
    assert out.exit_code == 0
    for name in METHODS:
        assert f" {name} " in out.output


def test_one_method_is_explained_with_its_parameters():
    out = run(app, ["methods", "sar-em"], env={"COLUMNS": "100"})
    assert out.exit_code == 0
    assert 'Needs the truth of every row with variant="published"' in out.output
    for word in ("Idea", "Assumption", "When it fails", "Reference", "max_iter = 50", "Bekker"):
        assert word in out.output


def test_a_misspelt_method_is_named():
    out = run(app, ["methods", "sar_em"])
    assert out.exit_code == 2
    assert "sar-em" in out.output
