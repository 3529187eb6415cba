// GPTQ and AWQ, whose settings have much in common. Sources: transformers, utils/quantization_config.py, GPTQConfig and
// AwqConfig; GPTQModel, quantization/config.py (dynamic).
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

/// How the numbers were found, by what, and how others compute with them.
constexpr std::string_view kHarmlessOfGptq[] = {"act_group_aware",
                                                "adapter",
                                                "backend",
                                                "batch_size",
                                                "block_name_to_quantize",
                                                "cache_block_outputs",
                                                "damp_auto_increment",
                                                "damp_percent",
                                                "dataset",
                                                "disable_exllama",
                                                "do_fuse",
                                                "exllama_config",
                                                "fuse_max_seq_len",
                                                "hyb_act",
                                                "lm_head",
                                                "max_input_length",
                                                "meta",
                                                "model_file_base_name",
                                                "model_name_or_path",
                                                "model_seqlen",
                                                "module_name_preceding_first_block",
                                                "modules_in_block_to_quantize",
                                                "modules_to_fuse",
                                                "mse",
                                                "offload_to_disk",
                                                "offload_to_disk_path",
                                                "pack_impl",
                                                "pad_token_id",
                                                "quantizer",
                                                "static_groups",
                                                "tokenizer",
                                                "true_sequential",
                                                "use_cuda_fp16",
                                                "use_exllama"};

void check_bits(SchemeKeys& keys, std::string_view key, int64_t bits) {
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) keys.problem(key, "2, 3, 4 or 8");
}

/// What stands in the settings, or in those of some modules, where `usual` is what holds otherwise.
MatrixCode gptq_code(SchemeKeys& keys, const MatrixCode& usual) {
  MatrixCode code = usual;
  code.bits = keys.whole("bits", usual.bits);
  check_bits(keys, "bits", code.bits);
  code.block.columns = keys.group_size("group_size", usual.block.columns);
  code.ordered = keys.flag("desc_act", usual.ordered);
  code.symmetric = keys.flag("sym", usual.symmetric);
  return code;
}

/// `dynamic`: expressions for modules, "-:" before those of modules that are not quantised.
void read_dynamic(SchemeKeys& keys, ModuleRules& rules) {
  const OrderedJson* dynamic = keys.find("dynamic");
  if (dynamic == nullptr || *dynamic == OrderedJson(false)) return;
  if (!dynamic->is_object()) return keys.problem("dynamic", "an object");
  for (const auto& [key, settings] : dynamic->items()) {
    const bool leaves_out = key.starts_with("-:");
    std::optional<MatrixCode> code;
    if (!leaves_out && settings.is_object()) {
      SchemeKeys own(settings, cat(keys.prefix(), "dynamic.", printable(key), "."), keys.problems());
      own.harmless(kHarmlessOfGptq);
      code = gptq_code(own, *rules.usual);
      own.finish();
    } else if (!leaves_out) {
      keys.refuse("dynamic", cat(printable(key), ": expected an object of settings, got ", json_text(settings)));
    }
    try {
      rules.rules.emplace_back(RuleText::kPattern, leaves_out || key.starts_with("+:") ? key.substr(2) : key, code);
    } catch (const CheckpointError& error) {
      keys.refuse("dynamic", error.what());
    }
  }
}

}  // namespace

ModuleRules read_gptq(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfGptq);
  ModuleRules rules;
  if (!keys.has("bits")) keys.problem("bits", "2, 3, 4 or 8");
  rules.usual = gptq_code(keys, {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 128}});
  const std::string format = keys.one_of("format", "gptq", {"gptq", "gptq_v2"});
  const std::string stored = keys.one_of("checkpoint_format", format, {"gptq", "gptq_v2"});
  rules.usual->zeros = stored == "gptq" ? ZeroPoints::kStoredLessOne : ZeroPoints::kStored;
  keys.one_of("pack_dtype", "int32", {"int32"});
  if (keys.flag("is_marlin_format", false)) keys.problem("is_marlin_format", "false: Marlin's layout is not read");
  read_dynamic(keys, rules);
  return rules;
}

ModuleRules read_awq(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfGptq);
  // With other meanings for GPTQ; nothing reads them for AWQ.
  constexpr std::string_view kOfBoth[] = {"desc_act", "sym", "dynamic", "pack_dtype"};
  keys.harmless(kOfBoth);
  MatrixCode code{.packing = MatrixPacking::kAwq, .bits = keys.whole("bits", keys.whole("w_bit", 4))};
  if (code.bits != 4) keys.problem(keys.has("bits") ? "bits" : "w_bit", "4");
  code.block = {1, keys.group_size("group_size", keys.group_size("q_group_size", 128))};
  code.zeros = ZeroPoints::kStored;
  code.symmetric = false;
  if (!keys.flag("zero_point", true)) keys.problem("zero_point", "true");
  keys.one_of("version", keys.one_of("format", "gemm", {"gemm"}), {"gemm"});
  if (lowered(keys.text("backend", "")) == "llm-awq")
    keys.problem("backend", "another than llm-awq, whose layout is its own");
  ModuleRules rules;
  add_rules(keys, "modules_to_not_convert", RuleText::kPart, std::nullopt, rules);
  rules.usual = code;
  return rules;
}

void leave_out_gptq(OrderedJson& settings, const LeftOut& left_out) {
  OrderedJson dynamic = OrderedJson::object();  // the first expression that matches holds
  for (const std::string& module : left_out.modules) dynamic["-:" + exact_expression(module)] = OrderedJson::object();
  OrderedJson& stored = settings["dynamic"];
  if (stored.is_object())
    for (const auto& [expression, value] : stored.items())
      if (!dynamic.contains(expression)) dynamic[expression] = value;
  stored = std::move(dynamic);
}

void leave_out_awq(OrderedJson& settings, const LeftOut& left_out) {
  // A list here comes on top of what is left alone anyway.
  add_to_list(settings, "modules_to_not_convert", RuleText::kPart, {}, left_out);
}

}  // namespace lancet
