"""Writes models/families/transformers_keys.json: which keys of config.json transformers reads, for each model type that lancet knows.

    .venv/bin/python tools/config_keys.py --write

`base`: what the base class and generation read, of which no logit hangs. `shared`: what code of all models reads, with its default.
`types`: by model type what its class declares, or its own code reads, with the default (null: none, or one that other keys decide);
`aliases`: other names of such keys. `whole`: types whose causal class has the configuration above the language model's.
tests/parity/test_config_keys.py makes the text anew and compares.
"""
import argparse
import ast
import inspect
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import transformers
from transformers import GenerationConfig, PreTrainedConfig, masking_utils
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ROOT / "models/families"
FILE = FAMILIES / "transformers_keys.json"
# `kwargs.pop("key"`, `kwargs.get("key"`: what a class reads without declaring it
TAKEN = re.compile(r'kwargs\.(?:pop|get|setdefault)\(\s*"(\w+)"')
# `getattr(config, "key", default)`: what code reads that may not be there
ASKED = re.compile(r'getattr\((?:self\.)?(?:text_)?config, "(\w+)"(?:, ([^(),]+))?\)')
# What the base class reads of which the computation hangs: layers of their own, rotary embeddings
NOT_OF_THE_BASE = {"per_layer_config", "rope_scaling", "rope_theta"}


def model_types():
    """The model types in the table of families."""
    lists = re.findall(r"\.model_types = \{([^}]*)\}", "\n".join(file.read_text() for file in sorted(FAMILIES.rglob("*.cpp"))))
    return sorted(name for names in lists for name in re.findall(r'"(\w+)"', names))


def as_json(value):
    """A default as JSON has it; null for objects of Python."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return None


def literal(text):
    try:
        return as_json(ast.literal_eval(text or "None"))
    except (ValueError, SyntaxError):
        return None


def declared(kind):
    """{key: default} of the dataclass's fields."""
    found = {}
    for field in fields(kind):
        default = field.default_factory() if field.default_factory is not MISSING else None if field.default is MISSING else field.default
        found[field.name] = as_json(default)
    return found


def asked(source):
    """{key: default} of what code asks for."""
    return {key: literal(default) for key, default in ASKED.findall(source)}


def base_keys():
    taken = set(TAKEN.findall(inspect.getsource(PreTrainedConfig.__post_init__))) - NOT_OF_THE_BASE
    implementation = {f"_{kind}_implementation{end}" for kind in ("attn", "experts") for end in ("", "_internal", "_autoset")}
    generation = set(GenerationConfig().to_dict()) | set(GenerationConfig._get_default_generation_params())
    return sorted(set(declared(PreTrainedConfig)) | taken | implementation | generation | {"_name_or_path"})


def keys_of(model_type, base):
    """What its configuration class and its model's file read, and other names of that."""
    kind = CONFIG_MAPPING[model_type]
    own = dict.fromkeys(TAKEN.findall(inspect.getsource(kind)))
    for file in sorted(Path(inspect.getfile(kind)).parent.glob("modeling_*.py")):
        own |= asked(file.read_text())
    own |= declared(kind)
    aliases = {name: key for name, key in kind.attribute_map.items() if name != key}
    keys = {key: default for key, default in sorted(own.items()) if key not in base and key not in aliases}
    return keys, dict(sorted(aliases.items()))


def causal_config(model_type):
    """The configuration class of the model that AutoModelForCausalLM makes."""
    return MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[model_type]].config_class


def table():
    base = base_keys()
    found = {name: keys_of(name, base) for name in model_types()}
    whole = [name for name in found if (text := CONFIG_MAPPING[name].sub_configs.get("text_config")) and causal_config(name) != text]
    shared = asked(inspect.getsource(masking_utils)) | {"per_layer_config": None}
    return dict(
        transformers=transformers.__version__, base=base, shared=dict(sorted(shared.items())), whole=whole, types={name: keys for name, (keys, _) in found.items()},
        aliases={name: aliases for name, (_, aliases) in found.items() if aliases},
    )


def text_of(keys):
    """JSON with a few keys a line, so that a change is seen."""
    def block(name, value, indent):
        lines = [""]
        for item in map(json.dumps, value) if isinstance(value, list) else (f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items()):
            if lines[-1] and len(indent + lines[-1] + item) > 112:
                lines.append("")
            lines[-1] += f"{item}, "
        lines[-1] = lines[-1][:-2]
        opening, closing = ("[", "]") if isinstance(value, list) else ("{", "}")
        return "\n".join([f"{indent}{json.dumps(name)}: {opening}", *(f"{indent}  {line.rstrip()}" for line in lines), indent + closing])

    parts = [f'  "transformers": {json.dumps(keys["transformers"])}', block("base", keys["base"], "  "), block("shared", keys["shared"], "  ")]
    parts.append(block("whole", keys["whole"], "  "))
    for name in ("types", "aliases"):
        inner = ",\n".join(block(kind, value, "    ") for kind, value in keys[name].items())
        parts.append(f'  "{name}": {{\n{inner}\n  }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="writes the file, in place of printing it")
    if parser.parse_args().write:
        FILE.write_text(text_of(table()))
    else:
        print(text_of(table()), end="")
