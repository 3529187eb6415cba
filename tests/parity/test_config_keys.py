"""Keys of config.json: the table of those that transformers reads is the installed transformers', and each kind of key is taken as it should be."""
import importlib.util

from config_corpus import KEYS, ROOT, cases, verdict
from engine import run_binary_raw

SPEC = importlib.util.spec_from_file_location("config_keys", ROOT / "tools/config_keys.py")
TOOL = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TOOL)
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
