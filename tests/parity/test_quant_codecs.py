"""Quantised matrices as lancet unpacks them against what they are by definition (tests/oracle/quantised.py) and against what bitsandbytes
and compressed-tensors made of their own (tests/fixtures/quantised/, tests/oracle/make_quantised.py): every bit.
"""
import hashlib
import json

import pytest
import torch
from matrix_jobs import QUANTISED_FIXTURES, Jobs, assert_same_bits, bits, write_quantised
from quantised import MODULE, NAME, VARIANTS, compressed, gptq, make
from safetensors import safe_open
from safetensors.torch import load_file

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
PACKAGES = ("bitsandbytes", "compressed-tensors")
LARGEST_OF_F16 = 65504.0


class UnpackJobs(Jobs):
    """Folders to unpack."""

    def __init__(self, root):
        super().__init__("dump_weights", root)

    def add(self, key, config, tensors, shapes, dtypes=("f32",), quantiser=None):
        folder = self.new_folder()
        write_quantised(folder, config, tensors)
        job = {"folder": str(folder), "shapes": {name: list(shape) for name, shape in shapes.items()}, "dtypes": list(dtypes)}
        self.jobs[key] = job | {"out": str(folder / "out.safetensors")} | ({"quantiser": quantiser} if quantiser else {})

    def unpacked(self, key):
        """The unpacked matrices by "DTYPE|NAME", and what is known of each."""
        answer = self.answer(key)
        return load_file(self.jobs[key]["out"]), answer


@pytest.fixture
def jobs(tmp_path):
    return UnpackJobs(tmp_path)


@pytest.fixture(scope="module")
def defined(tmp_path_factory):
    """Every variant by definition, and its job."""
    made, jobs = {variant: make(variant) for variant in VARIANTS}, UnpackJobs(tmp_path_factory.mktemp("defined"))
    for variant, one in made.items():
        jobs.add(variant, one.config, one.tensors, {NAME: one.weight.shape}, DTYPES)
    return made, jobs.run()


@pytest.mark.parametrize("variant", VARIANTS)
def test_unpacked_numbers_are_those_of_the_definition(variant, defined):
    made = defined[0][variant]
    unpacked, facts = defined[1].unpacked(variant)
    for name, dtype in DTYPES.items():
        assert_same_bits(unpacked[f"{name}|{NAME}"], made.weight.to(dtype), f"{variant} in {name}")
    stored = {key for key in made.tensors if not key.endswith("input_scale")}
    assert set(facts[NAME]["tensors"]) == stored
    assert facts[NAME]["stored_bytes"] == sum(made.tensors[key].nbytes for key in stored)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if "f32" not in v and "bf16" not in v])
def test_bytes_are_known_from_the_code(variant, defined):
    """Where scales have the usual type; zero points that are all the same, and an order that is none, need not be kept."""
    made, facts = defined[0][variant], defined[1].unpacked(variant)[1][NAME]
    groups = made.tensors.get(f"{MODULE}.scales", torch.empty(0)).numel()
    spared = groups if made.config.get("sym") or variant == "awq-constant" else 0
    spared += 8 * made.weight.shape[1] if variant in ("gptq-4-act-order-in-turn", "compressed-8-absent-order") else 0
    assert facts["bytes"] == facts["foretold"] - spared


def golden(package):
    with safe_open(QUANTISED_FIXTURES / f"{package}.safetensors", "pt") as file:
        variants = json.loads(file.metadata()["variants"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    return {name: facts | {"tensors": {key.split("|")[1]: tensor for key, tensor in tensors.items() if key.split("|")[0] == name}}
            for name, facts in variants.items()}


GOLDEN = {(package, variant): facts for package in PACKAGES for variant, facts in golden(package).items()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    jobs = UnpackJobs(tmp_path_factory.mktemp("packages"))
    for (package, variant), made in GOLDEN.items():
        jobs.add(f"{package} {variant}", made.get("config"), made["tensors"], {NAME: made["shape"]}, made["sha256"], made.get("quantiser"))
    return jobs.run()


@pytest.mark.parametrize(("package", "variant"), GOLDEN)
def test_unpacked_numbers_are_those_of_the_formats_own_package(package, variant, packages):
    made = GOLDEN[package, variant]
    unpacked, facts = packages.unpacked(f"{package} {variant}")
    assert made["sha256"], "a fixture without numbers"
    for name, expected in made["sha256"].items():
        ours = hashlib.sha256(bits(unpacked[f"{name}|{NAME}"]).numpy().tobytes()).hexdigest()
        assert ours == expected, f"{package} {variant} in {name}"
    if "quantiser" in made:
        assert facts[NAME]["bytes"] == facts[NAME]["foretold"]
    else:
        assert set(facts[NAME]["tensors"]) == set(made["tensors"])


def test_the_fixtures_have_every_format():
    assert len(GOLDEN) == 32 and sum("quantiser" in facts for facts in GOLDEN.values()) == 7


def test_a_matrix_that_is_stored_as_it_is_is_left_alone(jobs):
    made, head = make("gptq-4"), "lm_head.weight"
    jobs.add("gptq", made.config, made.tensors | {head: torch.ones(3, 4, dtype=torch.bfloat16)},
             {NAME: made.weight.shape, head: [3, 4], "model.absent.weight": [2, 2]})
    unpacked, facts = jobs.run().unpacked("gptq")
    assert set(unpacked) == {f"f32|{NAME}"} and facts[head] is None and facts["model.absent.weight"] is None


def test_groups_of_modules_have_settings_of_their_own(jobs):
    """compressed-tensors' groups, and GPTQ's dynamic: 8 bits for one module, 4 for the others."""
    other, expected = NAME.replace("down_proj", "up_proj"), {}
    for function, options in ((gptq, {"group": 32}), (compressed, {"group": 32, "symmetric": True})):
        four, eight = function(seed=1, bits=4, **options), function(seed=2, bits=8, **options)
        tensors = four.tensors | {key.replace("down_proj", "up_proj"): value for key, value in eight.tensors.items()}
        config = four.config
        if function is gptq:
            config["dynamic"] = {r"+:.*\.up_proj": {"bits": 8}, r"-:.*\.gate_proj": {}}
        else:
            config["config_groups"]["group_1"] = eight.config["config_groups"]["group_0"] | {"targets": [r"re:.*up_proj$"]}
        jobs.add(function.__name__, config, tensors, {NAME: four.weight.shape, other: eight.weight.shape})
        expected[function.__name__] = four.weight, eight.weight
    jobs.run()
    for key, (four, eight) in expected.items():
        unpacked, _ = jobs.unpacked(key)
        assert_same_bits(unpacked[f"f32|{NAME}"], four.float(), "4 bits")
        assert_same_bits(unpacked[f"f32|{other}"], eight.float(), "8 bits")


# ---- What is refused: where, what was expected, what came --------------------------------------------------------------------------


def changed(variant, part, change):
    """A variant with one tensor as `change` makes it; None takes it away."""
    made = make(variant)
    key = next(key for key in made.tensors if key == part or key.endswith("." + part))
    value = change(made.tensors[key].clone()) if change else None
    made.tensors = {k: v for k, v in made.tensors.items() if k != key} | ({key: value} if value is not None else {})
    return made, key


def with_number(value, dtype=None):
    def change(tensor):
        tensor = tensor if dtype is None else tensor.view(dtype)
        tensor.view(-1)[1] = value
        return tensor
    return change


def nan_code(tensor):
    tensor.view(torch.uint8).view(-1)[7] = 0x7F
    return tensor


BAD_PARTS = {
    "scales-shape": ("gptq-4", "scales", lambda t: t[:-1], ["shape [2, 64]", "expected [3, 64]"]),
    "zeros-shape": ("gptq-4", "qzeros", lambda t: t[:, :-1], ["shape [3, 7]", "expected [3, 8]"]),
    "zeros-missing": ("gptq-4", "qzeros", None, ["missing", "expected I32", "[3, 8]"]),
    "scales-type": ("gptq-4", "scales", lambda t: t.int(), ["type I32", "expected F16 or BF16 or F32"]),
    "order-missing": ("gptq-4-mixed", "g_idx", None, ["missing", "desc_act is true"]),
    "order-beyond": ("gptq-4-mixed", "g_idx", with_number(3), ["groups 0 to 3", "expected 0 to 2"]),
    "order-negative": ("gptq-4-mixed", "g_idx", with_number(-1), ["groups -1 to 2", "expected 0 to 2"]),
    "packed-order-beyond": ("compressed-4-mixed", "weight_g_idx", with_number(7), ["groups 0 to 7", "expected 0 to 2"]),
    "packed-order-missing": ("compressed-4-mixed", "weight_g_idx", None, ["missing", "actorder is group"]),
    "scales-nan": ("gptq-4", "scales", with_number(float("nan")), ["not finite"]),
    "scales-infinite": ("awq", "scales", with_number(float("inf")), ["not finite"]),
    "scales-too-large": ("gptq-8", "scales", with_number(60000.0), ["beyond 65504"]),
    "zeros-of-3-bits": ("gptq-3", "qzeros", with_number(5), ["expected zero points of 4"]),
    "awq-shape": ("awq", "qweight", lambda t: t[:, 1:], ["shape [128, 5]", "expected [128, 6]"]),
    "fp8-nan": ("fp8-rows", NAME, nan_code, ["NaN"]),
    "fp8-scale": ("fp8-blocks", "weight_scale_inv", lambda t: t[:, 1:], ["shape [3, 3]", "expected [3, 4]"]),
    "fp8-scale-missing": ("fp8-blocks", "weight_scale_inv", None, ["missing"]),
    "fp8-scale-nan": ("fp8-one", "weight_scale", lambda t: t * float("nan"), ["not finite"]),
    "nf4-absmax": ("bitsandbytes-nf4", "absmax", lambda t: t[:-1], ["shape [287]", "expected [288]"]),
    "nf4-absmax-nan": ("bitsandbytes-nf4", "absmax", with_number(float("nan")), ["not finite"]),
    "nf4-record-missing": ("bitsandbytes-nf4", "quant_state.bitsandbytes__nf4", None, ["missing", "quant_state"]),
    "nf4-record": ("bitsandbytes-nf4", "quant_state.bitsandbytes__nf4", lambda t: t[:-1], ["not valid JSON"]),
    "nf4-table": ("bitsandbytes-nf4", "quant_map", with_number(0.5), ["expected the numbers of nf4"]),
    "nf4-nested": ("bitsandbytes-nf4-nested", "nested_absmax", lambda t: t[:-1], ["shape [1]", "expected [2]"]),
    "nf4-nested-nan": ("bitsandbytes-nf4-nested", "nested_quant_map", with_number(float("nan")), ["not finite"]),
    "nf4-codes": ("bitsandbytes-nf4", NAME, lambda t: t[:-1], ["shape [9215, 1]", "expected [9216, 1]"]),
    "int8-scales": ("bitsandbytes-int8", "SCB", lambda t: t[1:], ["shape [39]", "expected [40]"]),
    "int8-scales-missing": ("bitsandbytes-int8", "SCB", None, ["missing"]),
    "int8-scales-nan": ("bitsandbytes-int8", "SCB", with_number(float("nan")), ["not finite"]),
    "packed-shape": ("compressed-4", "weight_shape", lambda t: t.flip(0), ["[96, 40]", "expected [40, 96]"]),
    "packed-zeros": ("compressed-4-asymmetric", "weight_zero_point", None, ["missing"]),
    "packed-scale": ("compressed-4", "weight_scale", lambda t: t[:, :2], ["shape [40, 2]", "expected [40, 3]"]),
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The changed tensors' names, and the jobs."""
    keys, jobs = {}, UnpackJobs(tmp_path_factory.mktemp("bad"))
    for case, (variant, part, change, _) in BAD_PARTS.items():
        made, keys[case] = changed(variant, part, change)
        jobs.add(case, made.config, made.tensors, {NAME: made.weight.shape})
    return keys, jobs.run()


@pytest.mark.parametrize("case", BAD_PARTS)
def test_tensors_that_do_not_fit_are_refused_by_name(case, bad):
    message = bad[1].refusal(case)
    assert all(part in message for part in [bad[0][case], *BAD_PARTS[case][3]]), message


def test_every_problem_is_said_at_once(jobs):
    made = make("gptq-4")
    made.tensors[f"{MODULE}.scales"] = made.tensors[f"{MODULE}.scales"][:1]
    del made.tensors[f"{MODULE}.qzeros"]
    jobs.add("both", made.config, made.tensors, {NAME: made.weight.shape})
    message = jobs.run().refusal("both")
    assert f"{MODULE}.scales: shape" in message and f"{MODULE}.qzeros: missing" in message


def test_records_that_may_be_missing(jobs):
    for variant, part in (("compressed-4", "weight_shape"), ("gptq-4", "g_idx")):
        made, _ = changed(variant, part, None)
        jobs.add(variant, made.config, made.tensors, {NAME: made.weight.shape})
    jobs.run()
    for variant in ("compressed-4", "gptq-4"):
        assert_same_bits(jobs.unpacked(variant)[0][f"f32|{NAME}"], make(variant).weight.float(), variant)


def test_zero_points_of_a_symmetric_file_are_zeros(jobs):
    for key, zeros in (("none", torch.zeros(40, 3, dtype=torch.int8)), ("some", torch.ones(40, 3, dtype=torch.int8))):
        made = make("compressed-4")
        jobs.add(key, made.config, made.tensors | {f"{MODULE}.weight_zero_point": zeros}, {NAME: made.weight.shape})
    jobs.run()
    assert_same_bits(jobs.unpacked("none")[0][f"f32|{NAME}"], make("compressed-4").weight.float(), "none")
    assert "says symmetric" in jobs.refusal("some")


def test_tensors_of_another_method_are_refused(jobs):
    cases = (("gptq-4", "fp8-rows"), ("fp8-rows", "bitsandbytes-nf4"), ("bitsandbytes-int8", "awq"), ("gptq-4", "compressed-4"))
    for variant, config in cases:
        made = make(variant)
        jobs.add(f"{variant} {config}", make(config).config, made.tensors, {NAME: made.weight.shape})
    jobs.run()
    for variant, config in cases:
        assert "as quantization_config says" in jobs.refusal(f"{variant} {config}")


def test_another_shape_in_the_model_is_refused(jobs):
    variants = ("gptq-4", "awq", "fp8-blocks", "bitsandbytes-nf4", "bitsandbytes-int8", "compressed-4")
    for variant in variants:
        made = make(variant)
        jobs.add(variant, made.config, made.tensors, {NAME: reversed(made.weight.shape)})
    jobs.run()
    assert all(f"{MODULE}." in jobs.refusal(variant) for variant in variants)


def test_weights_beyond_f16_are_not_unpacked_to_it(jobs):
    made = make("fp8-one")
    made.tensors[f"{NAME}_scale"] *= LARGEST_OF_F16
    for dtype in ("bf16", "f16"):
        jobs.add(dtype, made.config, made.tensors, {NAME: made.weight.shape}, [dtype])
    jobs.run()
    assert jobs.unpacked("bf16")[0][f"bf16|{NAME}"].isfinite().all()
    assert "expected at most 65504" in jobs.refusal("f16", exit_code=5)
