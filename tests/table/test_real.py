"""A real table with real selective labels, read as it is."""

from pathlib import Path

import pytest

from dcem.table import Roles, read_table
from dcem.table.messages import DataWarning

TABLE = Path(__file__).resolve().parents[3] / "shared" / "real" / "diabetes130.csv.gz"


@pytest.mark.skipif(not TABLE.exists(), reason="the diabetes table is not here (see its README)")
def test_the_diabetes_table():
    roles = Roles(
        label="A1Cresult",
        positive=(">7", ">8"),
        untested_value=("None",),
        group=("race",),
        id="patient_nbr",
        missing=("?",),
    )
    with pytest.warns(DataWarning, match="'race' is missing in 2,273 of 101,766 rows"):
        table = read_table(TABLE, roles)
    problem, columns = table.problem, {column.name: column for column in table.columns}
    assert (len(problem), int(problem.tested.sum())) == (101_766, 17_018)
    assert int((problem.y_obs == 1).sum()) == 12_028
    assert len(set(problem.person)) == 71_518
    assert problem.group_names[:2] == ("AfricanAmerican", "Asian")
    left_out = {name for name, column in columns.items() if column.role == "left out"}
    assert {"encounter_id", "examide", "citoglipton"} <= left_out
    assert columns["admission_type_id"].kind == "category"
    assert columns["time_in_hospital"].kind == "number"
    assert columns["max_glu_serum"].encoded[-2:] == ("max_glu_serum=None", "max_glu_serum=Norm")
    assert len(columns["diag_1"].encoded) == 22
    assert columns["insulin"].encoded == tuple(
        f"insulin={level}" for level in ("Down", "No", "Steady", "Up")
    )
    assert not any(column.flag for column in table.columns)  # what docs/table.md says
