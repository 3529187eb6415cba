"""An option is declared once. CONTRIBUTING.md says which places a new one touches; here they are counted.

The places: its constant, in a file *_spec.h of include/lancet/spec; its name in a list of that file; a line that reads it, elsewhere.
"""
import re

import pytest
from cpp_source import REPOSITORY, load_sources

CONSTANT = re.compile(r"static constexpr (?:Integer|Number|Flag|Choice|Text|Path|Integers|Texts|Section)Option (k\w+)")
LIST = re.compile(r"static constexpr AnyOption k\w+\[\] = \{(.*?)\};", re.S)
# Where flags and keywords are made of options.
DOORS = ("src/cli/", "src/python/")
# What reads other files than jobs spells their keys itself.
OTHER_FILES = {"src/core/config_section.cpp", "src/job_setup/hparams_rules.cpp", "src/job_setup/imported_hparams.cpp", "src/job_setup/presets.cpp"}
# `requests` of a tune is read as that of a job.
READ_AS_ANOTHER = {"RelearnSpec::kRequests", "TuneSpec::kRequests"}
SPELT = re.compile(
    r"\.(?:integer|number|boolean|text|texts|choice|path|integers|number_or_auto|integers_or_auto|number_map|section|raw|has|is_auto|is_map"
    r"|choice_of<\w+(?:::\w+)*>)\(\s*\"\w+\""
)


def structures(text):
    """{name: body} of the structs of a file."""
    parts = re.split(r"^struct (\w+) \{$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture(scope="module")
def sources():
    return [source for source in load_sources(REPOSITORY) if not source.is_test]


@pytest.fixture(scope="module")
def declared(sources):
    found = {}
    for source in sources:
        if source.path.parent.as_posix() == "include/lancet/spec" and source.path.stem.endswith("_spec"):
            for name, body in structures(source.text).items():
                lists = " ".join(LIST.findall(body))
                for constant in CONSTANT.findall(body):
                    found[f"{name}::{constant}"] = (source.path, len(re.findall(rf"&{constant}\b", lists)))
    return found


def test_every_option_is_in_a_list_of_its_file(declared):
    assert len(declared) > 80
    assert {name: count for name, (_, count) in declared.items() if count == 0} == {}


def test_every_option_is_read_and_in_few_places(sources, declared):
    """Two files for nearly all: where it is declared, and where it is read."""
    words = {s.path: set(re.findall(r"\w+::\w+", s.text)) for s in sources}
    places = {name: [str(other) for other, said in words.items() if other != path and name in said] for name, (path, _) in declared.items()}
    readers = {name: [path for path in paths if path.endswith(".cpp") and not path.startswith(DOORS)] for name, paths in places.items()}
    assert {name for name, paths in readers.items() if not paths} == READ_AS_ANOTHER, "declared, but read nowhere"
    alone = [name for name, paths in readers.items() if len(paths) == 1]
    assert len(alone) > 0.8 * len(declared), {name: paths for name, paths in readers.items() if len(paths) > 1}


def test_no_reader_of_a_job_spells_a_key(sources):
    folders = {"deltas", "editing", "editor_parts", "editors", "eval", "export", "job", "outcome", "pipeline", "plan", "requests", "session", "statistics", "studies", "training"}
    spelt = [
        f"{source.path}: {found}"
        for source in sources
        if source.folder in folders and str(source.path) not in OTHER_FILES
        for found in SPELT.findall(source.text)
        if "ConfigSection" in source.text
    ]
    assert spelt == [], "read by a declaration instead"


def test_no_door_spells_choices_again(sources):
    """Flags and keywords are made of the declarations."""
    doors = [(str(source.path), source.without_comments) for source in sources if str(source.path).startswith(DOORS)]
    doors += [(str(path), path.read_text()) for path in (REPOSITORY / "python/lancet").glob("*.py")]
    specs = [source.text for source in sources if source.path.parent.as_posix() == "include/lancet/spec"]
    lists = [re.findall(r'"([^"]+)"', names) for text in specs for names in re.findall(r"string_view k(?!Default)\w+\[\] = \{(.*?)\};", text)]
    assert len(lists) > 10
    spelt = [f"{path}: {first}, {second}" for path, text in doors for first, second, *_ in lists if re.search(rf'{first}"?, ?"?{second}\b', text)]
    assert spelt == []
