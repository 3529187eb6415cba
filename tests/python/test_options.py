"""Options are declared once (include/lancet/spec): keywords of Python and flags of the program have their names, choices, defaults and words."""
import functools
import inspect
import os
import re

import lancet
import pytest
from conftest import BUILD, FACTS
from lancet import _options
from program_server import ProgramServer

FUNCTIONS = {"run": lancet.open, "generate": lancet.Session.generate, "adapter": lancet.Session.export_adapter, "undo": lancet.undo}
# Options that are no keywords, and why.
NO_KEYWORD = {("run", "timeout_s"): "a session is one process", ("run", "ranks_per_model"): "likewise", ("generate", "samples"): "a prompt may stand in the list several times"}
# Which options commands have as flags.
FLAGS = {
    **{command: {"run": list(_options.DECLARED["run"])} for command in ("edit", "erase", "eval", "stats", "compare", "tune")},
    "generate": {"generate": list(_options.DECLARED["generate"]), "run": ["devices", "dtype", "quantise_base"]},
    "export adapter": {"adapter": list(_options.DECLARED["adapter"])},
    "trace": {"run": ["devices", "dtype", "quantise_base"]},
    "plan": {"run": ["dtype", "quantise_base"]},
    "quantise": {"run": ["devices", "dtype"]},
    "undo": {"undo": list(_options.DECLARED["undo"])},
    "diff": {"run": ["devices"], "adapter": ["rank"]},
    "serve": {"run": ["devices"]},
}
# Flags of other meanings, with the names of options of `run`.
OTHERS = {
    ("plan", "devices"): "devices that are not there, by their memory",
    ("doctor", "devices"): "all, or none",
    ("trace", "seed"): "of the noise",
    ("generate", "seed"): "of what is drawn",
    ("export adapter", "dtype"): "of the factors",
}


@pytest.fixture(scope="module")
def help_of(tmp_path_factory):
    """A function from the words of a command to what its --help shows."""
    program, folder = ProgramServer(BUILD / "lancet", dict(os.environ)), tmp_path_factory.mktemp("help")

    @functools.cache
    def text(command):
        code, shown, errors = program.run(folder, [*command.split(), "--help"])
        assert code == 0, errors
        return shown

    yield text
    program.end()


def flags_in(text):
    """{flag: (what it takes, default, help)} of a --help."""
    flags = re.findall(r"^  (?:-\w,)?(--[a-z-]+)(?: (\S+?))?(?:=(\S+))?(?: REQUIRED| \.\.\.| Excludes: \S+)*\s+(\S.*)$", text, re.M)
    return {flag: (takes, default, what) for flag, takes, default, what in flags}


def flag_of(key):
    return "--" + key.replace("_", "-")


@pytest.mark.parametrize("section", FUNCTIONS)
def test_keywords_are_the_declared_options(section):
    parameters = inspect.signature(FUNCTIONS[section]).parameters
    keys = [key for key in _options.DECLARED[section] if (section, key) not in NO_KEYWORD]
    assert [name for name in parameters if name in _options.DECLARED[section]] == keys, "all of them, in their order"
    for key in keys:
        assert parameters[key].default in (None, _options.default(section, key)), key
        assert parameters[key].annotation is not inspect.Parameter.empty, key


@pytest.mark.parametrize("command", FLAGS)
def test_flags_are_the_declared_options(command, help_of):
    flags = flags_in(help_of(command))
    for section, keys in FLAGS[command].items():
        for key in keys:
            declared = _options.DECLARED[section][key]
            takes, default, what = flags[flag_of(key)]
            if declared.get("type") != ["boolean", "null"]:
                assert default == str(declared["default"]).removesuffix(".0"), key
            if choices := [name for name in declared.get("enum", []) if name]:
                assert takes == "{" + ",".join(choices) + "}", key
            assert what.lower().startswith(declared["description"].replace("`", "").lower()), key


def test_no_other_flag_has_the_name_of_an_option_of_run(help_of):
    commands = re.findall(r"^  ([a-z]+)  ", help_of(""), re.M)
    assert "generate" in commands and "serve" in commands
    found = {(command, key) for command in [*commands, "export adapter"] for key in _options.DECLARED["run"] if flag_of(key) in flags_in(help_of(command))}
    assert found == {(command, key) for command, sections in FLAGS.items() for key in sections.get("run", [])} | set(OTHERS)


def test_a_keyword_is_read_as_the_key_of_a_job(tiny):
    """The words are the reader's, whoever gives the value."""
    for key, value, part in (("dtype", "f8", "one of auto, f32, bf16, f16, f64"), ("quantise_base", "int4", "did you mean int8"), ("threads", -1, "from 0 to 4096"),
                             ("seed", 0.5, "an integer of at least 0"), ("devices", {"cuda": 0}, "a list of texts"), ("cuda_graphs", "yes", "true or false")):  # fmt: skip
        with pytest.raises(lancet.ConfigError, match=f"^{key}: expected ") as keyword:
            lancet.open(tiny, progress=False, **{key: value})
        assert part in str(keyword.value)
        if key != "devices":
            with pytest.raises(lancet.ConfigError) as changed:
                lancet.open(tiny, progress=False, set={f"run.{key}": value})
            assert str(changed.value) == str(keyword.value)


def test_a_misspelt_keyword_is_told_its_name(tiny):
    with pytest.raises(lancet.ConfigError, match=r"^dtpye: unknown keyword of open\(\); did you mean dtype"):
        lancet.open(tiny, progress=False, dtpye="f32")
    with lancet.open(tiny, progress=False) as session:
        with pytest.raises(lancet.ConfigError, match=r"^evalute: unknown keyword of edit\(\); did you mean evaluate"):
            session.edit(FACTS[:1], evalute=["efficacy"])
        with pytest.raises(lancet.ConfigError, match=r"^layrs: unknown keyword of edit\(\); did you mean layers"):
            session.edit(FACTS[:1], method="memit", layrs=[0])
        for key, value in (("tokens", 0), ("temperature", 0), ("top_k", -1), ("top_p", 1.5), ("seed", -1)):
            with pytest.raises(lancet.ConfigError, match=f"^{key}: expected "):
                session.generate("a", **{key: value})
        for key, value in (("format", "peff"), ("dtype", "f64"), ("rank", 0)):
            with pytest.raises(lancet.ConfigError, match=f"^{key}: expected "):
                session.export_adapter("unused", **{key: value})
