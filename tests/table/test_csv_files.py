"""Text files as programs of all countries write them: one table comes out."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table import values
from dcem.table.messages import InputError
from dcem.table.read import notes, read_header, read_whole, strange_rows

FRAME = pd.DataFrame({"alter": [40, 51, 62], "crp": [1234.5, 2.25, -0.5], "ort": ["Köln", "", "x"]})
SEMI = FRAME.to_csv(index=False, sep=";", decimal=",")
TABS = FRAME.to_csv(index=False, sep="\t", decimal=",")
POINTS = FRAME.to_csv(index=False, sep="\t")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SEMI, "utf-8"),
        (SEMI, "cp1252"),
        (SEMI, "utf-16"),
        (SEMI, "utf-16-le"),  # without a mark
        (SEMI.replace("\n", "\r\n"), "utf-8-sig"),
        ("sep=;\n" + SEMI, "utf-8"),
        ("SEP=;\r\n" + SEMI.replace("\n", "\r\n"), "utf-8-sig"),
        (SEMI.replace("1234,5", "1.234,5"), "utf-8"),
        (SEMI.replace(";", " ; "), "utf-8"),
        (TABS, "utf-16"),
        (POINTS, "utf-8"),
        (TABS.replace("\t", "|"), "utf-8"),
    ],
)
def test_one_table_comes_out(text, encoding, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    assert read_header(path) == list(FRAME.columns)
    found = read_whole(path).to_pandas()
    np.testing.assert_array_equal(found.alter.astype(float), FRAME.alter)
    np.testing.assert_array_equal(found.crp.astype(float), FRAME.crp)
    assert found.ort.str.strip().tolist() == FRAME.ort.tolist()


def test_a_comma_that_may_part_thousands_is_left_alone(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("n\tx\n1,234\t1\n5,678\t2\n")
    assert read_whole(path)["n"].to_pylist() == ["1,234", "5,678"]
    path.write_text("n\tx\n1,25\t1.5\n5,75\t2.5\n")  # who knows
    assert read_whole(path)["n"].to_pylist() == ["1,25", "5,75"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_numbers_with_what_stands_around_them_have_decimal_commas_too(mark, tmp_path):
    path = tmp_path / "table.csv"
    cells = ["0,64", "<0,6", "> 1.200,5", "12,5 %", "€ 3,50", "−0,5"]
    income = ["850", "1.200", "12.500", "1.250.000", "-3.000", "0"]
    lines = [mark.join(pair) for pair in zip(cells, income, strict=True)]
    path.write_text("\n".join([f"crp{mark}income", *lines]) + "\n", encoding="utf-8")
    found = read_whole(path)
    assert found["crp"].to_pylist() == ["0.64", "<0.6", "> 1200.5", "12.5 %", "€ 3.50", "−0.5"]
    assert found["income"].to_pylist() == ["850", "1200", "12500", "1250000", "-3000", "0"]


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["7.356", "7.402"], ["7.356", "7.402"]),  # `3,5` in another column proves nothing here
        (["0.912", "1.346"], ["0.912", "1.346"]),
        (["850", "1.200"], ["850", "1200"]),  # 850 beside 1.2 would be odd
        (["850", "1200", "1.346"], ["850", "1200", "1.346"]),
        (["7", "7.356"], ["7", "7.356"]),
        (["12.34", "1.346"], ["12.34", "1.346"]),
        (["1.346", "2.581.747"], ["1346", "2581747"]),
        (["1.346", "1.234,5"], ["1346", "1234.5"]),
        (["1.346", "1.234.567", "0.5"], ["1.346", "1.234.567", "0.5"]),  # a contradiction stays
        (["2,581,747", "955,402"], ["2,581,747", "955,402"]),
        (["1,234.5", "955,402"], ["1,234.5", "955,402"]),
        (["955,402", "12.5"], ["955,402", "12.5"]),
        (["1,804", "4,461"], ["1.804", "4.461"]),
        (["1 234,567", "0,5"], ["1 234.567", "0.5"]),
    ],
)
@pytest.mark.parametrize("above", [0, 200_000])
def test_each_column_proves_what_its_own_points_and_commas_mean(cells, found, above, tmp_path):
    path = tmp_path / "table.csv"
    plain = ["3,5;"] * above  # the proof may be far below
    path.write_text("\n".join(["crp;x", *plain, *[f"3,5;{cell}" for cell in cells]]) + "\n")
    assert read_whole(path)["x"].to_pylist()[len(plain) :] == found


def test_two_codes_in_a_cell_are_no_decimals(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("codes\tx\n1,3\t0.5\n2,4\t1.5\n")
    assert read_whole(path)["codes"].to_pylist() == ["1,3", "2,4"]


def test_a_title_above_the_header_is_named_as_what_is_wrong(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Results of May\n\nx,y\n1,2\n3,4\n")
    with pytest.raises(InputError, match="above the header"):
        read_whole(path)


def test_commas_part_thousands_where_points_are_decimal(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("score;income\n-0.13;64,058\n1.25;1,200\n")
    assert read_whole(path)["income"].to_pylist() == ["64,058", "1,200"]


def test_points_part_thousands_only_where_commas_are_decimal(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("dose;income\n0.5;850\n1.25;1.200\n")
    assert read_whole(path)["income"].to_pylist() == ["850", "1.200"]
    path.write_text("n;income\n1;850\n2;1.200\n")  # nothing tells
    assert read_whole(path)["income"].to_pylist() == ["850", "1.200"]


def test_blanks_in_a_single_name_belong_to_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,x ,y\n1,2,3\n")
    assert read_header(path) == ["x", "x ", "y"]


def test_empty_rows_and_headers_in_between_are_pointed_out(tmp_path):
    header, rows = "age,sex,result", [f"{20 + i},{'FM'[i % 2]},{i % 3 % 2}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *rows[:30], header, *rows[30:], ",,", ",,", ""]))
    found = list(strange_rows(read_whole(path)))
    assert [re.search(r"\d+", note)[0] for note in found] == ["2", "1"]


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ("age,bmi,sex,result\n", None),
        ("age,bmi,sex,result\nyears,kg/m2,,0/1\n", "'age' is 'years'"),
        ("Demographics,,,Test\nage,bmi,sex,result\n", "2 of 4 columns"),
        ("40,25.5,F,1\n", "'40' and '25.5'"),
        ("age,Asthma,sex,COPD\n", None),  # a box that is ticked may hold its name
    ],
)
def test_a_header_of_two_rows_or_none_is_pointed_out(tmp_path, above, said):
    rows = [f"{20 + i},{20 + i % 20 / 2},{'FM'[i % 2]},{i % 3 % 2}" for i in range(60)]
    if "COPD" in above:
        rows = [f"{20 + i},{'Asthma' * (i % 2)},F,{'COPD' * (i % 3 % 2)}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text(above + "\n".join(rows) + "\n")
    found = [*notes(path), *strange_rows(read_whole(path))]
    assert any(said in note for note in found) if said else found == []


@pytest.mark.parametrize("between", ["\n", "\n\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_quote_that_is_never_closed_swallows_no_rows(tmp_path, between, end):
    rows = [f"{i},40,{i % 2},cough" for i in range(20)]
    rows[10] = '10,40,0,"cough'
    path = tmp_path / "t.csv"
    path.write_text(between.join(["id,age,y,symptom", *rows]) + end)
    with pytest.raises(InputError, match="'symptom' contains 10 lines"):
        read_whole(path)


def test_a_cell_may_end_in_a_line_break(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,note\n1,"dry, at night\n"\n2,none\n')
    assert read_whole(path).num_rows == 2


@pytest.mark.parametrize("text", ["x,y", "x,y\n", 'x,"y\nz"'])
def test_a_header_alone_is_a_table_without_rows(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert read_whole(path).shape == (0, 2)


def test_capitals_do_not_hide_that_a_file_is_packed(tmp_path):
    path = tmp_path / "T.CSV.GZ"
    FRAME.to_csv(path, index=False, compression="gzip")
    assert read_whole(path)["alter"].to_pylist() == ["40", "51", "62"]


def test_files_that_are_something_else_say_what(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False, sep=" ")
    assert ["one column" in note for note in notes(path)] == [True]
    FRAME.to_parquet(path)
    with pytest.raises(InputError, match=r"seems to be a \.parquet"):
        read_header(path)
    FRAME.to_csv(path, index=False, compression="gzip")
    with pytest.raises(InputError, match=r"seems to be a \.csv\.gz"):
        read_header(path)


def test_blanks_part_thousands_before_a_decimal_comma(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "montant;nom\n40 134,50;a\n1\N{NO-BREAK SPACE}250\N{NO-BREAK SPACE}000,5;b\n850,2;c\n"
    )
    amounts = values.numbers(read_whole(path).column("montant"))
    np.testing.assert_array_equal(amounts, [40134.5, 1250000.5, 850.2])


@pytest.mark.parametrize("ending", ["tsv.gz", "csv.bz2", "txt.zst"])
def test_packed_text_is_read_and_a_part_of_it_refused(tmp_path, ending):
    packed = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}[ending.rpartition(".")[2]]
    path = tmp_path / f"t.{ending}"
    with pa.output_stream(path, compression=packed) as file:
        file.write(b"a\tb\n1\tx\n2\ty\n")
    assert read_whole(path).to_pydict() == {"a": ["1", "2"], "b": ["x", "y"]}
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(InputError, match="Copy it again"):
        read_whole(path)


def test_an_archive_says_that_it_must_be_unpacked(tmp_path):
    (tmp_path / "t.csv.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match="Unpack"):
        read_whole(tmp_path / "t.csv.zip")


def test_an_unclosed_quote_is_named_as_the_reason(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"1,x\n2,y\n3,z\n')
    with pytest.raises(InputError, match="unclosed quotation"):
        read_whole(path)


def test_utf16_without_a_mark_is_read_in_either_order(tmp_path):
    for encoding in ("utf-16-le", "utf-16-be"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes("a,b\n1,ä\n".encode(encoding))
        assert read_whole(path).to_pydict() == {"a": ["1"], "b": ["ä"]}
