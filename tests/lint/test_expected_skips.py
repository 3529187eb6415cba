"""A test that skips fails its suite, unless tests/expected_skips.txt says where it may: in Python's suites and in GoogleTest's programs."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cpp_source import REPOSITORY
from expected_skips import complaint, read_list

TESTS = REPOSITORY / "tests"
EXPECTED = "root may write to read-only folders"

PLANTED = f"""
import pytest

def test_runs(): pass

def test_skips_as_expected(): pytest.skip({EXPECTED!r})

def test_skips_in_its_body(): pytest.skip("no such thing")

@pytest.mark.skipif(True, reason="not today")
def test_skips_by_a_mark(): pass

@pytest.fixture
def what_is_missing(): pytest.importorskip("no_such_package")

def test_skips_in_a_fixture(what_is_missing): pass

@pytest.mark.parametrize("case", [])
def test_has_no_case(case): pass

@pytest.mark.xfail(reason="fails, and says so")
def test_fails_as_expected(): assert False
"""
MODULE = "import pytest\nno_such_package = pytest.importorskip('no_such_package')\n\ndef test_runs(): pass\n"

# A program as of GoogleTest: it writes the results that it is asked for.
PROGRAM = """#!/bin/sh
cat > "${1#--gtest_output=xml:}" <<'END'
<testsuites><testsuite name="Things"><testcase name="Run" status="run" result="completed" classname="Things" />
<testcase name="Skip/0" status="run" result="skipped" classname="Some/Things"><skipped message="a.cpp:1&#x0A;REASON"></skipped></testcase>
</testsuite></testsuites>
END
"""


def run_planted(folder, text):
    (folder / "test_planted.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "conftest", "-p", "no:cacheprovider", "test_planted.py"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(TESTS)}, timeout=60)


def run_program(folder, text, **changes):
    program = folder / "some_tests"
    program.write_text(text)
    program.chmod(0o755)
    command = [sys.executable, TESTS / "support" / "expected_skips.py", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **changes})


def test_suites_have_a_home_of_their_own(tmp_path):
    assert Path.home().name.startswith("lancet-tests-home-") and os.environ["HF_HUB_OFFLINE"] == "1"
    done = run_program(tmp_path, '#!/bin/sh\necho "$HOME:$XDG_CACHE_HOME:"\nls -A "$HOME"\n', XDG_CACHE_HOME=str(tmp_path))
    assert Path(done.stdout.removesuffix("::\n")) != Path.home() and done.stdout.count("\n") == 1


def test_this_suite_is_held_to_the_list(request):
    assert request.config.pluginmanager.has_plugin(str(TESTS / "conftest.py"))


def test_python_tests_may_skip_as_the_list_says_alone(tmp_path):
    done = run_planted(tmp_path, PLANTED)
    summary = done.stdout.partition("short test summary info")[2]
    assert done.returncode == 1 and summary.strip().endswith("s"), done.stdout + done.stderr
    found = {line.split(" ")[0] + " " + line.partition("::")[2].split(" ")[0].split("[")[0] for line in summary.splitlines() if "::" in line}
    assert found == {"PASSED test_runs", "XFAIL test_fails_as_expected", "FAILED test_skips_in_its_body", "ERROR test_skips_by_a_mark",
                     "ERROR test_skips_in_a_fixture", "ERROR test_has_no_case"}, done.stdout  # fmt: skip
    assert "SKIPPED [1]" in summary and EXPECTED in summary
    assert "add to the list: CIRCUMSTANCES | no such thing" in done.stdout and "`make setup-test`" in done.stdout


def test_a_python_module_may_not_skip_as_a_whole(tmp_path):
    done = run_planted(tmp_path, MODULE)
    assert done.returncode != 0 and "test_planted.py skips" in done.stdout and "could not import 'no_such_package'" in done.stdout, done.stdout


def test_a_program_may_skip_as_the_list_says(tmp_path):
    done = run_program(tmp_path, PROGRAM.replace("REASON", EXPECTED))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("reason", ["no such thing", ""])
def test_a_program_may_not_skip_otherwise(tmp_path, reason):
    done = run_program(tmp_path, PROGRAM.replace("REASON", reason))
    assert done.returncode == 1 and "Some/Things.Skip/0 skips" in done.stderr
    assert f"does not expect: {reason or 'no reason given'}\n" in done.stderr


@pytest.mark.parametrize(
    ("end", "words"), [("exit 3", "ended with 3"), ("exit 0", "ended before its tests did"), ("kill -SEGV $$", "was ended by SIGSEGV")]
)
def test_a_program_that_does_not_end_well_fails(tmp_path, end, words):
    done = run_program(tmp_path, f"#!/bin/sh\n{end}\n")
    assert done.returncode == 1 and words in done.stderr


def test_the_list_is_for_what_make_test_does_not_install():
    pins = (REPOSITORY / "requirements-test.txt").read_text() + (REPOSITORY / "requirements.txt").read_text()
    packages = [line.partition("==")[0] for line in pins.splitlines() if "==" in line]
    assert "tokenizers" in packages and "torch" in packages
    for package in packages:
        assert complaint("tests/a.py::test_b", f"could not import '{package}': No module named '{package}'"), package


@pytest.mark.parametrize("line", ["no circumstances", "no words | ", " | no zsh"])
def test_a_line_has_circumstances_and_words(line):
    with pytest.raises(ValueError, match="CIRCUMSTANCES"):
        read_list(f"# of machines\n\n{line}\n")
    assert read_list("# of machines\n\na machine without it | no zsh | or fish\n") == ["no zsh | or fish"]
