"""Help, version and completion answer at once and say what they should."""

import resource
import subprocess
import sys

import pytest

import dcem as package
from dcem.cli import COMMANDS

HEAVY = [
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "torch",
    "matplotlib",
    "pyarrow",
    "duckdb",
    "joblib",
]


def test_help_and_version_load_nothing_heavy() -> None:
    """One after the other in one process: what none of them loads, each does without."""
    asked = [["--help"], ["--version"], *([name, "-h"] for name in COMMANDS)]
    code = f"""
import sys
from dcem.cli import main
for arguments in {asked!r}:
    sys.argv = ["dcem", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    assert not loaded, (arguments, loaded)
print("asked for help", len({asked!r}), "times")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith(f"asked for help {len(asked)} times\n")
    assert done.stdout.count("Usage: dcem") == len(asked) - 1


def test_help_takes_at_most_twice_the_time_of_importing_typer() -> None:
    """Processor time, the least of five runs each: other work on the machine does not count."""

    def seconds(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    ask = "import sys; sys.argv = ['dcem', 'audit', '--help']; from dcem.cli import main; main()"
    assert min(seconds(ask) for _ in range(5)) < 2 * min(seconds("import typer") for _ in range(5))


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, dcem; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_public_names_are_there_and_unknown_ones_are_not() -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_version(dcem) -> None:
    done = dcem("--version")
    assert (done.returncode, done.stdout) == (0, f"dcem {package.__version__}\n")


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_lists_every_command_with_its_whole_line(dcem, columns) -> None:
    text = " ".join(dcem("--help", COLUMNS=columns).stdout.split())
    for name, entry in COMMANDS.items():
        assert f"{name} {entry.help}" in text
    assert "<bool>" not in text
    assert "..." not in " ".join(dcem("benchmark", "-h", COLUMNS=columns).stdout.split())[60:]


def test_help_says_what_the_settings_file_may_give(dcem) -> None:
    """`dcem audit` alone is enough beside a `dcem.toml`: nothing of it is required."""
    for name, places in {"audit": 2, "compare": 2, "fit": 2, "predict": 0, "init": 0}.items():
        text = " ".join(dcem(name, "--help").stdout.split())
        assert text.count("[required, or in dcem.toml]") == places, name


def test_the_package_is_the_command(tmp_path) -> None:
    command = [sys.executable, "-m", "dcem", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == f"dcem {package.__version__}\n"


def test_a_mistyped_command_gets_a_suggestion(dcem) -> None:
    done = dcem("simulat")
    assert done.returncode == 2
    assert "Did you mean 'simulate'?" in done.stderr


def test_completion_of_commands(dcem) -> None:
    def complete(line: str) -> list[str]:
        words = line.split(" ")
        return dcem(
            _DCEM_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
        ).stdout.split()

    assert complete("dcem ") == list(COMMANDS)
    assert complete("dcem si") == ["simulate"]
    assert complete("dcem sepsis b") == ["build"]
    assert complete("dcem simulate --ph") == ["--phase"]
    assert "as-written" in complete("dcem simulate --preset as-w")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(dcem, shell) -> None:
    done = dcem(_DCEM_COMPLETE=f"source_{shell}")
    assert done.returncode == 0
    assert f"complete_{shell}" in done.stdout


def test_completion_can_be_installed(dcem, tmp_path) -> None:
    done = dcem(
        "--install-completion",
        "bash",
        HOME=str(tmp_path),
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
    )
    assert done.returncode == 0, done.stderr
    scripts = [p.read_text() for p in tmp_path.rglob("*") if p.is_file() and "dcem" in p.name]
    assert any("_DCEM_COMPLETE=complete_bash" in text for text in scripts)
