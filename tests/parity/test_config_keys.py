"""Keys of config.json: the table of those that transformers reads is the installed transformers', and each kind of key is taken as it should be."""
import importlib.util
import json

import pytest
from config_corpus import CLASS_OF, KEYS, REFUSED, ROOT, SILENT, cases, of_class, verdict
from engine import run_binary_raw

SPEC = importlib.util.spec_from_file_location("config_keys", ROOT / "tools/config_keys.py")
TOOL = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TOOL)
# Keys that a class declares, that say something at another value, and of which no logit of one forward pass hangs.
HARMLESS = json.loads((ROOT / "tests/fixtures/harmless_config_keys.json").read_text())


def lancet(*words):
    return run_binary_raw("lancet", *words)


def test_the_table_is_the_installed_transformers():
    assert TOOL.FILE.read_text() == TOOL.text_of(TOOL.table()), "run: .venv/bin/python tools/config_keys.py --write"


def test_every_model_type_of_a_family_is_in_the_table():
    assert set(KEYS["types"]) == set(TOOL.model_types()) and len(KEYS["types"]) > 70
    assert KEYS["types"]["llama"]["rms_norm_eps"] == 1e-6 and KEYS["types"]["granite"]["embedding_multiplier"] == 1.0
    assert KEYS["shared"] == dict(attention_chunk_size=None, is_causal=True, per_layer_config=None, sliding_window=None)
    assert not {"rope_theta", "rope_scaling", "per_layer_config", "sliding_window"} & set(KEYS["base"])


def test_each_kind_of_key_is_taken_as_it_should_be(tmp_path):
    """None that is harmless is refused, none that changes the computation is accepted."""
    wrong = {}
    for kind, name, config, expected in cases():
        found, said = verdict(lancet, config, tmp_path)
        if found != expected:
            wrong[kind, name] = (expected, found, said[-600:])
    assert wrong == {}


def other_value(value):
    """One that a key may have in place of its default."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 2
    return value + "_x" if isinstance(value, str) else 3


@pytest.mark.parametrize("kind", [kind for kind in KEYS["types"] if kind in CLASS_OF])
def test_a_key_that_the_class_reads_is_read_or_refused(kind, tmp_path):
    """Unless it is in the list of harmless ones: then it is taken without a word."""
    config = of_class(kind) | dict(architectures=[CLASS_OF[kind]])
    start = verdict(lancet, config, tmp_path)
    assert start[0] == SILENT, start
    before = described(tmp_path)
    accepted = set()
    for key, default in KEYS["types"][kind].items():
        if key in ("text_config", "vision_config") or key in HARMLESS:
            continue
        found, said = verdict(lancet, config | {key: other_value(config.get(key, default))}, tmp_path)
        assert found in (SILENT, REFUSED), (key, said)
        if found == SILENT and described(tmp_path) == before:
            accepted.add(key)
    assert accepted <= set(READ_UNSEEN), "accepted, and nothing that inspect shows changes by it"


# Read by lancet, though `inspect` does not show them.
READ_UNSEEN: set[str] = set()


def described(folder):
    return json.loads(lancet("inspect", folder / "config.json", "--json").stdout)
