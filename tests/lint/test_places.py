"""What CONTRIBUTING.md has a recipe for touches the places that it says, and no others: here they are counted for each method, metric,
request format, model family, quantised format and command.

The sources are those of the product; tests and documents that have to name each one are listed too.
"""
import json
import re

import pytest
from cpp_source import REPOSITORY, load_sources

PRODUCT = ("include", "src", "models", "editors")
# Where other tools' names of methods are read, as CONTRIBUTING.md says.
HPARAMS = {"src/job_setup/hparams_rules.cpp", "src/job_setup/imported_hparams.cpp"}


def read(path):
    return (REPOSITORY / path).read_text()


METHODS = re.findall(r'^  ROW\("([^"]+)", make_(\w+),', read("editors/registry.cpp"), re.M)
PROTOCOLS = re.findall(r'ProtocolRow (k\w+)\{\s*"([^"]+)",\s*"[^"]*",\s*make_(\w+)', read("src/eval/protocols/protocols.h"))
FORMATS = re.findall(r'^      \{"([^"]+)",[^/]*?\bparse_(\w+)\}', read("src/requests/readers/format_table.cpp"), re.M)


@pytest.fixture(scope="module")
def sources():
    return [source for source in load_sources(REPOSITORY) if str(source.path).startswith(PRODUCT)]


def places(sources, pattern):
    """The product's files with it, comments left out."""
    return {str(source.path) for source in sources if re.search(pattern, source.without_comments)}


def test_the_tables_are_read():
    assert min(len(METHODS), len(PROTOCOLS), len(FORMATS)) >= 11


METHOD_PAGES = (
    "tests/oracle/golden/methods.py",
    "tests/oracle/golden/make.py",
    "tests/pipeline/methods_on_devices_test.cpp",
    "tests/pipeline/methods_on_ranks_test.cpp",
    "tests/cli/test_methods.py",
    "tests/cli/test_schema.py",
    "tests/unit/spec/option_test.cpp",
    "data/jobs/demo-compare.yaml",
    "docs/methods.md",
    "docs/guides/choosing-a-method.md",
    "docs/options.md",
)


@pytest.mark.parametrize(("name", "function"), METHODS)
def test_a_method_touches_its_places(sources, name, function):
    named = places([s for s in sources if s.folder not in ("eval", "requests")], rf'"{name}"|\bmake_{function}\b')
    named -= {"include/lancet/job_setup/parse_job.h"}  # the default method
    own = {path for path in named if path.startswith("editors/")} - {"editors/registry.cpp"}
    assert len(own) <= 2, own  # its file, and one that it shares
    assert len(named - own - {"editors/registry.cpp"} - HPARAMS - {path for path in named if path.startswith("include/lancet/spec/")}) == 0, named
    for page in METHOD_PAGES:
        assert re.search(rf"\b{re.escape(name)}\b", read(page), re.I), f"{page} does not name {name}"


METRIC_PAGES = ("docs/metrics.md", "docs/options.md", "tests/oracle/golden_metrics.py", "tests/unit/eval/evaluation_test.cpp")


@pytest.mark.parametrize(("row", "name", "function"), PROTOCOLS)
def test_a_metric_touches_its_places(sources, row, name, function):
    assert len(places(sources, rf"\b{row}\b")) <= 3, "protocols.h, protocol_table.cpp, its own file"
    made = places(sources, rf"\bmake_{function}\b.*EvaluationOptions|\bmake_{function}\(")
    assert "src/eval/protocols/protocols.h" in made
    assert len({path for path in made if path.startswith("src/eval/")}) == 2, made
    for page in METRIC_PAGES:
        assert re.search(rf"\b{name}(?:\b|_)", read(page)), f"{page} does not name {name}"


FORMAT_PAGES = ("docs/job-file.md", "docs/options.md", "tests/unit/requests/formats_test.cpp")


@pytest.mark.parametrize(("name", "parse"), FORMATS)
def test_a_format_touches_its_places(sources, name, parse):
    named = places([s for s in sources if s.folder == "requests"], rf"\bparse_{parse}\b")
    assert named >= {"src/requests/readers/formats.h", "src/requests/readers/format_table.cpp"}
    assert len(named) == 3, named  # and the file that reads it
    assert all(path.startswith("src/requests/readers/") for path in named), named
    for page in FORMAT_PAGES:
        assert re.search(rf"[`\"]{name}[`\"]", read(page)), f"{page} does not name {name}"


# ---- What the recipes of CONTRIBUTING.md say


def recipe(title):
    return re.search(rf"^## {title}\n(.*?)^## ", read("CONTRIBUTING.md"), re.M | re.S)[1]


def test_recipes_name_the_places_that_are_counted_here():
    for title, files in (
        ("Adding a method", (*METHOD_PAGES, *sorted(HPARAMS))),
        ("Adding a metric", METRIC_PAGES),
        ("Adding a request format", FORMAT_PAGES),
        ("Adding a model family", (*FAMILY_PLACES, ROW_PLACE, *OWN_PLACES)),
        ("Adding a quantised format", FORMAT_PLACES + QUANTISER_PLACES),
        ("Adding a command", COMMAND_PLACES),
    ):
        text = recipe(title)
        assert [file for file in files if f"`{file}`" not in text] == [], title


# ---- Model families

# Of each family: its function, or its name in config.json, stands there.
FAMILY_PLACES = ("models/families/family_list.h", "src/deltas/gguf_names.cpp", "docs/model-classes.md")
# Of a family that is little but a row of the table: a file for each.
ROW_PLACE = "tests/fixtures/families/"
# Of the others.
OWN_PLACES = (
    "tests/support/family_models.cpp",
    "tests/parity/family_checkpoints.py",
    "tests/parity/test_rope_keys.py",
    "tests/parity/test_families.py",
    "tests/parity/test_gguf_adapters.py",
    "tests/oracle/golden/families.py",
    "tests/fixtures/published/",
    "docs/models.md",
)
FAMILY_FUNCTIONS = re.findall(r"\b([a-z]\w+)(?=,|\n)", re.search(r"#define LANCET_FAMILIES(.*?)\n\n", read("models/families/family_list.h"), re.S)[1] + "\n")
ROW_KINDS = {json.loads(path.read_text())["config"]["model_type"] for path in (REPOSITORY / ROW_PLACE).glob("*.json")}
# (family, place) -> why it is not there.
FAMILY_LEAVES_OUT = {
    ("llama", "tests/parity/test_families.py"): "the demo model is one, which the other files there run",
    ("gptj", "src/deltas/gguf_names.cpp"): "llama.cpp does not run it",
    ("gpt2", "tests/parity/test_rope_keys.py"): "it has no rotary embedding",
    ("mixtral", "tests/oracle/golden/families.py"): "plain versions of methods on experts are Qwen3-MoE's",
    ("stablelm", "tests/oracle/golden/families.py"): "it differs from Llama in the norm and the share of heads that turns, which logits show",
}
NOT_OF_LLAMA_CPP = "its converter has no such architecture, or its names were not tried"
IN_ONE_TENSOR = "its experts, which edits change, lie in one tensor: no linear module that has factors"
for reason, functions in ((NOT_OF_LLAMA_CPP, "hyperclovax helium ministral ministral3 cwm vaultgemma gpt_neo opt biogpt nanochat persimmon"),
                          (IN_ONE_TENSOR, "qwen3_5_moe granite_moe gpt_oss")):  # fmt: skip
    FAMILY_LEAVES_OUT |= {(function, "src/deltas/gguf_names.cpp"): reason for function in functions.split()}


def kinds_by_family():
    """The model types that BY_FAMILY's variants are of."""
    kind_of = dict(re.findall(r'"(\w+)": Variant\("(\w+)"', read("tests/parity/family_checkpoints.py")))
    listed = re.search(r"^BY_FAMILY = \[(.*?)\]", read("tests/parity/test_families.py"), re.M | re.S)[1]
    return {kind_of[variant] for variant in re.findall(r'"(\w+)"', listed)}


def published_architectures():
    """Of what public models' config.json says; of multi-modal files the language model's."""
    folder = REPOSITORY / "tests/fixtures/published"
    return {json.loads(path.read_text())["architectures"][0] for path in folder.glob("*.json")}


@pytest.mark.parametrize("function", FAMILY_FUNCTIONS)
def test_a_family_touches_its_places(sources, function):
    defined = [s for s in sources if s.folder == "models" and re.search(rf"^constinit const Family {function} = \{{", s.text, re.M)]
    assert len(defined) == 1, "its own file"
    own, text = str(defined[0].path), defined[0].text.split(f"Family {function} = {{")[1]
    assert own.startswith("models/families/")
    assert function in FAMILY_FUNCTIONS and places([s for s in sources if s.folder == "models"], rf"Family {function} =") == {own}
    name, listed = (re.search(rf"\.{key} = \{{?([^}};]*?)\}}?,$", text, re.M)[1] for key in ("name", "architectures"))
    architectures, kinds = re.findall(r'"(\w+)"', listed), re.findall(r'"(\w+)"', re.search(r"\.model_types = \{([^}]*)\}", text)[1])
    assert architectures and kinds
    named = places(sources, "|".join(f'"{architecture}"' for architecture in architectures))
    named -= {own, "src/doctor/split_model.cpp"}  # which makes a Llama of its own
    # those two name classes by what llama.cpp calls them
    assert named <= {"src/deltas/gguf_names.cpp", "src/gguf/architectures.cpp"}, "a family is asked for by its fields, not by its name"

    def stands_in(place, words):
        return any(re.search(rf'"{word}"', read(place)) for word in words)

    found = {
        "models/families/family_list.h": True,
        "src/deltas/gguf_names.cpp": stands_in("src/deltas/gguf_names.cpp", architectures),
        "docs/model-classes.md": any(f"`{architecture}`" in read("docs/model-classes.md").split("are refused")[0] for architecture in architectures),
    }
    if set(kinds) & ROW_KINDS:
        assert kinds[0] in ROW_KINDS, "those after it are of what stands above a text model"
    else:
        found |= {
            "tests/support/family_models.cpp": stands_in("tests/support/family_models.cpp", architectures),
            "tests/parity/family_checkpoints.py": stands_in("tests/parity/family_checkpoints.py", kinds),
            "tests/parity/test_rope_keys.py": stands_in("tests/parity/test_rope_keys.py", kinds),
            "tests/parity/test_families.py": bool(kinds_by_family() & set(kinds)),
            "tests/parity/test_gguf_adapters.py": stands_in("tests/parity/test_gguf_adapters.py", kinds),
            "tests/oracle/golden/families.py": stands_in("tests/oracle/golden/families.py", kinds),
            "tests/fixtures/published/": bool(published_architectures() & set(architectures)),
            "docs/models.md": name.strip('"') in read("docs/models.md"),
        }
        assert set(found) == {*FAMILY_PLACES, *OWN_PLACES}
    assert [place for place, stands in found.items() if stands == ((function, place) in FAMILY_LEAVES_OUT)] == []


# ---- Quantised formats: methods of config.json, and the layouts of a matrix that they use

FORMAT_PLACES = (
    "src/quant_formats/formats/NAME.cpp",
    "src/quant_formats/formats/formats.h",
    "include/lancet/quant_formats/matrix_code.h",
    "src/quant/formats/NAME.cpp",
    "src/quant/formats/codecs.h",
    "tests/support/packed_formats.h",
    "tests/support/pack_weights.cpp",
    "tests/unit/quant_formats/quant_scheme_test.cpp",
    "tests/unit/quant_formats/unquantised_modules_test.cpp",
    "tests/oracle/quantised.py",
    "docs/models.md",
)
SCHEME_FORMATS = sorted(path.name for path in (REPOSITORY / "src/quant_formats/formats").glob("*.cpp"))
QUANT_FORMATS = re.findall(r"&(k\w+Format)\b", read("src/quant_formats/formats/formats.h"))
QUANT_METHODS = [(name, file) for file in SCHEME_FORMATS
                 for name in re.findall(r'\.name = "([^"]+)"', read(f"src/quant_formats/formats/{file}"))]  # fmt: skip
CODECS = re.findall(r"&(k\w+Codec)\b", read("src/quant/formats/codecs.h"))
PACKINGS = re.findall(
    r"^  (k\w+),? +///", re.search(r"enum class MatrixPacking \{(.*?)^\};", read("include/lancet/quant_formats/matrix_code.h"), re.M | re.S)[1], re.M
)
# What `run.quantise_base` makes; the default of a field.
OF_ONE_PACKING = {"src/quant/quantise.cpp", "include/lancet/quant_formats/matrix_code.h"}


# What names the quantisers of `run.quantise_base`.
QUANTISER_PLACES = ("include/lancet/spec/job_spec.h", "src/plan/job_work.cpp", "src/quant/quantise.cpp")
QUANTISERS = re.findall(r'\{Quantiser::\w+, "(\w+)",', read("src/quant/quantise.cpp"))


def test_a_quantiser_touches_its_places():
    assert len(QUANTISERS) >= 3
    for page in QUANTISER_PLACES:
        assert [name for name in QUANTISERS if not re.search(rf"[\",{{]{name}[\",}}]", read(page))] == [], page


@pytest.mark.parametrize("row", QUANT_FORMATS)
def test_a_quantised_format_is_a_file_and_a_row(sources, row):
    named = places(sources, rf"\b{row}\b")
    own = named - {"src/quant_formats/formats/formats.h"}
    assert len(named) == 2 and len(own) == 1, named
    assert re.fullmatch(r"src/quant_formats/formats/\w+\.cpp", own.pop())
    assert len(QUANT_FORMATS) == len(SCHEME_FORMATS)


@pytest.mark.parametrize(("name", "file"), QUANT_METHODS)
def test_a_quantisation_method_touches_its_places(sources, name, file):
    named = places([s for s in sources if s.folder == "quant_formats"], rf'"{re.escape(name)}"')
    assert named == {f"src/quant_formats/formats/{file}"}
    definition = "tests/oracle/gguf_files.py" if name == "gguf" else "tests/oracle/quantised.py"
    for page in ("docs/models.md", definition, "tests/unit/quant_formats/quant_scheme_test.cpp",
                 "tests/unit/quant_formats/unquantised_modules_test.cpp"):  # fmt: skip
        assert re.search(rf"\b{re.escape(name)}\b", read(page)), f"{page} does not name {name}"


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_layout_of_matrices_touches_its_places(sources, packing):
    named = places(sources, rf"MatrixPacking::{packing}\b")
    rows = {room: places([s for s in sources if s.folder == room], rf"\.packing = MatrixPacking::{packing},\s+\.(?:meaning|assemble) =")
            for room in ("quant_formats", "quant")}  # fmt: skip
    assert all(len(files) == 1 for files in rows.values()), rows
    (scheme,), (codec,) = rows.values()
    assert codec == scheme.replace("quant_formats", "quant"), "a file of the same name in both rooms"
    others = named - {scheme, codec} - OF_ONE_PACKING
    # methods that have matrices of another format's layout
    assert all(re.fullmatch(r"src/quant_formats/formats/\w+\.cpp", path) for path in others), others
    row = re.search(rf"\b(k\w+Codec)\{{\.packing = MatrixPacking::{packing},", read(codec))[1]
    assert places(sources, rf"\b{row}\b") == {codec, "src/quant/formats/codecs.h"}
    if packing == "kGguf":  # has types of its own: src/gguf/README.md says their places
        return
    for page in ("tests/support/packed_formats.h", "tests/support/pack_weights.cpp"):
        assert f"MatrixPacking::{packing}" in read(page), f"{page} does not name {packing}"


def test_nobody_but_formats_asks_which_format_it_is(sources):
    asks = r"case MatrixPacking::|[!=]= MatrixPacking::|switch \([^)]*packing\)"
    assert places(sources, asks) == set()


# ---- Commands

COMMAND_PLACES = ("src/cli/commands.h", "src/cli/main.cpp", "docs/commands.md", "tests/cli/test_docs.py")
COMMANDS = re.findall(r'\{"(\w+)",\s+add_\1\b', read("src/cli/main.cpp"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_touches_its_places(sources, command):
    named = places([s for s in sources if s.folder == "cli"], rf"\badd_{command}\b[(,}}]")
    own = named - {"src/cli/commands.h", "src/cli/main.cpp"}
    assert len(named) == 3 and len(own) == 1, named
    assert re.fullmatch(r"src/cli/(?:commands|edits|servers)/command_\w+\.cpp", own.pop())
    assert re.search(rf"`{command}`|lancet {command}\b", read("docs/commands.md")), f"docs/commands.md does not name {command}"
    assert re.search(rf'^    ["\']lancet {command}\b', read("tests/cli/test_docs.py"), re.M), f"tests/cli/test_docs.py has no row of {command}"


# ---- Kernels

KERNELS = re.findall(r'"(\w+)"', re.search(r"kKernelNames\[\] = \{(.*?)\};", read("src/kernels/gpu_kernels.cpp"), re.S)[1])


ATTENTION_KERNELS = re.findall(r'launch_\w+\([^"]*"(\w+)",', read("src/kernels/attention/attention_device.cpp"))


def test_a_kernel_that_is_launched_is_loaded():
    """One that is not is missed on a GPU alone."""
    launched = [*re.findall(r'launch_on\(\w+, "(\w+)",', read("src/kernels/decoder_device.cpp")), *ATTENTION_KERNELS]
    made = re.findall(r"\blancet_(\w+)_##NAME\(", read("src/kernels/device/decoder_kernels.cu"))
    assert set(launched) == set(made) == set(KERNELS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_touches_its_places(kernel):
    launch = ("src/kernels/decoder_device.cpp", rf'launch_on\(\w+, "{kernel}",')
    if kernel in ATTENTION_KERNELS:  # it has passes of its own
        launch = ("src/kernels/attention/attention_device.cpp", f'"{kernel}"')
    for page, pattern in (
        ("src/kernels/device/decoder_kernels.cu", rf"\blancet_{kernel}_##NAME\("),
        ("src/kernels/decoder_passes.h", r"\b\w+\(" if kernel in ATTENTION_KERNELS else rf"\b{kernel}\("),
        launch,
        ("tests/support/emulated_kernels.cpp", rf"LANCET_BOUND\({kernel}, TYPE\)"),
        ("tests/unit/kernels/gpu_kernels_test.cpp", f'"{kernel}"'),
        ("tests/ptx/kernel_rows.py", rf'@row\("{kernel}"\)'),
    ):
        assert re.search(pattern, read(page)), f"{page} does not have {kernel}"
        assert f"`{page}`" in recipe("Adding a kernel")


def test_the_tables_of_the_recipes_are_read():
    assert len(FAMILY_FUNCTIONS) >= 15 and len(QUANT_METHODS) >= 6 and len(PACKINGS) == len(CODECS) >= 7 and len(COMMANDS) >= 25 and len(KERNELS) >= 7
    assert {function for function, _ in FAMILY_LEAVES_OUT} <= set(FAMILY_FUNCTIONS)
