"""A method, a metric or a request format touches the places that CONTRIBUTING.md says, and no others: here they are counted for each.

The sources are those of the product; tests and documents that have to name each one are listed too.
"""
import re

import pytest
from cpp_source import REPOSITORY, load_sources

PRODUCT = ("include", "src", "models", "editors")
# Where other tools' names of methods are read, as CONTRIBUTING.md says.
HPARAMS = {"src/job/hparams_rules.cpp", "src/job/imported_hparams.cpp"}


def read(path):
    return (REPOSITORY / path).read_text()


METHODS = re.findall(r'^  ROW\("([^"]+)", make_(\w+),', read("editors/registry.cpp"), re.M)
PROTOCOLS = re.findall(r'ProtocolRow (k\w+)\{\s*"([^"]+)",\s*"[^"]*",\s*make_(\w+)', read("src/eval/protocols/protocols.h"))
FORMATS = re.findall(r'^      \{"([^"]+)", "[^"]*",\s*(\w+), parse_(\w+)\}', read("src/requests/readers/format_table.cpp"), re.M)


@pytest.fixture(scope="module")
def sources():
    return [source for source in load_sources(REPOSITORY) if str(source.path).startswith(PRODUCT)]


def places(sources, pattern):
    """The product's files with it, comments left out."""
    return {str(source.path) for source in sources if re.search(pattern, source.without_comments)}


def test_the_tables_are_read():
    assert (len(METHODS), len(PROTOCOLS), len(FORMATS)) == (11, 11, 11)


@pytest.mark.parametrize(("name", "function"), METHODS)
def test_a_method_touches_its_places(sources, name, function):
    named = places([s for s in sources if s.folder not in ("eval", "requests")], rf'"{name}"|\bmake_{function}\b')
    named -= {"include/lancet/job/job_defaults.h"}  # the default method
    own = {path for path in named if path.startswith("editors/")} - {"editors/registry.cpp"}
    assert len(own) <= 2, own  # its file, and one that it shares
    assert len(named - own - {"editors/registry.cpp"} - HPARAMS - {path for path in named if path.startswith("include/lancet/spec/")}) == 0, named
    for page in ("docs/methods.md", "docs/guides/choosing-a-method.md", "tests/oracle/golden/make.py", "tests/cli/test_methods.py"):
        assert re.search(rf"\b{re.escape(name)}\b", read(page), re.I), f"{page} does not name {name}"


@pytest.mark.parametrize(("row", "name", "function"), PROTOCOLS)
def test_a_metric_touches_its_places(sources, row, name, function):
    assert len(places(sources, rf"\b{row}\b")) <= 3, "protocols.h, protocol_table.cpp, its own file"
    made = places(sources, rf"\bmake_{function}\b.*EvaluationOptions|\bmake_{function}\(")
    assert "src/eval/protocols/protocols.h" in made
    assert len({path for path in made if path.startswith("src/eval/")}) == 2, made
    assert re.search(rf"`{name}`", read("docs/metrics.md")), f"docs/metrics.md does not name {name}"


@pytest.mark.parametrize(("name", "knows", "parse"), FORMATS)
def test_a_format_touches_its_places(sources, name, knows, parse):
    functions = rf"\bparse_{parse}\b" + (rf"|\b{knows}\b" if knows != "nullptr" else "")
    named = places([s for s in sources if s.folder == "requests"], functions)
    assert named >= {"src/requests/readers/formats.h", "src/requests/readers/format_table.cpp"}
    assert len(named) == 3, named  # and the file that reads it
    assert all(path.startswith("src/requests/readers/") for path in named), named
    assert name in read("tests/unit/requests/formats_test.cpp")
    assert f"`{name}`" in read("docs/job-file.md"), f"docs/job-file.md does not name {name}"
