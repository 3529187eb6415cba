#include "folder_metadata.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/text/chat_template_text.h"

namespace lancet {
namespace {

using ConfigJson = nlohmann::json;

std::string config_place(const ModelFiles& files) { return (files.checkpoint.folder() / "config.json").string(); }

/// The keys of the language model: those nested in a multi-modal one's, if there are such.
ConfigJson config_of_language_model(const ModelFiles& files) {
  ConfigJson json = parse_json_object(files.checkpoint.config_text());
  const std::string nested(files.config.family->nested_under);
  if (nested.empty() || !json.contains(nested) || !json[nested].is_object()) return json;
  ConfigJson keys = json[nested];
  for (const auto& [key, value] : json.items())
    if (key != nested && !keys.contains(key)) keys[key] = value;
  return keys;
}

/// Adds what metadata has of latent attention, in the form in which llama.cpp absorbs projections, and of its experts.
void add_latents(const ModelConfig& config, ConfigNumbers& numbers) {
  const LatentConfig& latent = config.latent;
  const ExpertsConfig& experts = config.experts;
  const auto first = std::ranges::find(experts.layers, true);
  const std::pair<std::string_view, int64_t> sizes[] = {
      {"num_key_value_heads", 1},
      {kLatentKeySize, config.head_dim},
      {kLatentValueSize, latent.value_dim},
      {kAbsorbedKeySize, latent.rank + latent.turned_dim},
      {kAbsorbedValueSize, latent.rank},
      {"kv_lora_rank", latent.rank},
      {"qk_nope_head_dim", latent.plain_dim},
      {"first_k_dense_replace", first - experts.layers.begin()},
      {"n_routed_experts", experts.count},
      {"n_shared_experts", experts.d_ffn > 0 ? experts.shared / experts.d_ffn : 0},
      {"n_group", experts.groups},
      {"topk_group", experts.groups_chosen},
      {"norm_topk_prob", experts.sums_to_one ? 1 : 0},
      {kGatingFunction, experts.score == RouterScore::kSigmoid ? kSigmoidGating : kSoftmaxGating}};
  for (const auto& [key, size] : sizes) numbers[std::string(key)] = static_cast<double>(size);
  if (latent.query_rank > 0) numbers["q_lora_rank"] = static_cast<double>(latent.query_rank);
  numbers["routed_scaling_factor"] = experts.scale;
}

/// All numbers of config.json, and those that it leaves to the class's defaults.
ConfigNumbers numbers_of(const ConfigJson& json, const ModelConfig& config) {
  ConfigNumbers numbers;
  for (const auto& [key, value] : json.items())
    if (value.is_boolean())
      numbers[key] = value.get<bool>() ? 1 : 0;
    else if (value.is_number())
      numbers[key] = value.get<double>();
  const std::pair<const char*, int64_t> sizes[] = {{"num_hidden_layers", config.n_layers},
                                                   {"hidden_size", config.d_model},
                                                   {"intermediate_size", config.d_ffn},
                                                   {"num_attention_heads", config.n_heads},
                                                   {"num_key_value_heads", config.n_kv_heads},
                                                   {"max_position_embeddings", config.max_positions},
                                                   {"vocab_size", config.vocab_size},
                                                   {"n_layer", config.n_layers},
                                                   {"n_embd", config.d_model},
                                                   {"n_inner", config.d_ffn},
                                                   {"n_head", config.n_heads},
                                                   {"n_positions", config.max_positions},
                                                   {"ffn_hidden_size", config.d_ffn}};
  for (const auto& [key, size] : sizes) numbers.try_emplace(key, static_cast<double>(size));
  for (const char* key : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"})
    numbers.try_emplace(key, config.norm_eps);
  if (config.head_dim * config.n_heads != config.d_model)
    numbers.try_emplace("head_dim", static_cast<double>(config.head_dim));
  if (config.experts.count > 0) {  // classes have the same number under one of two names
    for (const char* key : {"num_experts", "num_local_experts"})
      numbers.try_emplace(key, static_cast<double>(config.experts.count));
    numbers.try_emplace("num_experts_per_tok", static_cast<double>(config.experts.chosen));
    numbers.try_emplace("moe_intermediate_size", static_cast<double>(config.experts.d_ffn));
  }
  if (const RecurrenceConfig& mixer = config.recurrence; mixer.kind == MixerKind::kGatedDelta && mixer.taps > 0) {
    const auto attention = std::ranges::find(mixer.layers, false);
    const std::pair<const char*, int64_t> of_mixer[] = {
        {"linear_conv_kernel_dim", mixer.taps},    {"linear_key_head_dim", mixer.key_dim},
        {"linear_num_key_heads", mixer.key_heads}, {"linear_num_value_heads", mixer.value_heads},
        {"linear_value_size", mixer.value_size()}, {"full_attention_interval", attention - mixer.layers.begin() + 1}};
    for (const auto& [key, size] : of_mixer) numbers[key] = static_cast<double>(size);
  }
  if (config.latent.rank > 0) add_latents(config, numbers);
  // Falcon's files may have another number, which does not count
  numbers["num_kv_heads"] = static_cast<double>(config.n_kv_heads);
  numbers.try_emplace("use_parallel_residual", config.order == BlockOrder::kParallel ? 1 : 0);
  numbers.try_emplace("logit_scale", config.logits_scale);
  if (config.attention_cap > 0) numbers.try_emplace("attn_logit_softcapping", config.attention_cap);
  if (config.logits_cap > 0) numbers.try_emplace("final_logit_softcapping", config.logits_cap);
  if (std::ranges::count(config.windowed, true) > 0)
    numbers.try_emplace("sliding_window", static_cast<double>(config.window));
  else
    numbers.erase("sliding_window");  // a key that no layer follows
  return numbers;
}

/// What config.json says of the rotary embedding under this key; null: nothing.
ConfigJson rope_entry(const ConfigJson& json, const char* entry) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (const auto rope = json.find(key); rope != json.end() && rope->is_object())
      if (const auto found = rope->find(entry); found != rope->end()) return *found;
  return nullptr;
}

/// DeepSeek's mscale_all_dim.
double log_share_of(const ConfigJson& json) {
  const ConfigJson share = rope_entry(json, "mscale_all_dim");
  return share.is_number() ? share.get<double>() : 0;
}

/// The parts of the rotary embedding for time, height and width; four numbers.
std::vector<int32_t> sections_of(const ConfigJson& json, std::vector<int32_t> sections) {
  constexpr size_t kSections = 4;
  const ConfigJson own = rope_entry(json, "mrope_section");
  if (own.is_array() && own.size() < kSections) sections = own.get<std::vector<int32_t>>();
  sections.resize(kSections);
  return sections;
}

}  // namespace

GgufLayout layout_of(const ModelFiles& files) {
  const ConfigJson json = config_of_language_model(files);
  const auto type = json.find("model_type");
  const bool is_text = type != json.end() && type->is_string();
  return {is_text ? type->get<std::string>() : std::string(files.config.family->model_types.front()),
          numbers_of(json, files.config), config_place(files)};
}

GgufRope rope_of(const ModelFiles& files) {
  const RopeConfig& rope = files.config.rope;
  GgufRope made{
      .dim = rope.dim, .theta = rope.theta, .factor = rope.factor, .original_positions = rope.original_max_positions};
  const ConfigJson json = config_of_language_model(files);
  made.log_share = log_share_of(json);
  made.sections = sections_of(json, made.sections);
  if (files.config.window_rope) made.window_theta = files.config.window_rope->theta;
  switch (rope.scaling) {
    case RopeConfig::Scaling::kNone:
      break;
    case RopeConfig::Scaling::kLinear:
      made.scaling = "linear";
      break;
    case RopeConfig::Scaling::kYarn:
      made.scaling = "yarn";
      made.fast_turns = rope.fast_turns;
      made.slow_turns = rope.slow_turns;
      break;
    case RopeConfig::Scaling::kLlama3:
      made.scaling = "llama3";
      break;
    case RopeConfig::Scaling::kLongRope:
      made.scaling = "longrope";
      made.short_factors.assign(rope.short_factors.begin(), rope.short_factors.end());
      made.long_factors.assign(rope.long_factors.begin(), rope.long_factors.end());
      made.amplitude = rope.amplitude;
      break;
    case RopeConfig::Scaling::kDynamic:
      throw CheckpointError(cat(config_place(files),
                                ": rope_scaling: expected linear, yarn, llama3 or longrope, got dynamic: a GGUF file ",
                                "cannot say it"));
  }
  return made;
}

FolderTokenizer tokenizer_of(const ModelFiles& files) {
  const std::filesystem::path& folder = files.checkpoint.folder();
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!has_entry(file))
    throw CheckpointError(
        cat(file.string(), ": expected the tokenizer in this form, got none: transformers writes it: ",
            "AutoTokenizer.from_pretrained('", folder.string(), "').save_pretrained('", folder.string(), "')"));
  const Tokenizer& tokenizer = *files.tokenizer;
  FolderTokenizer made{.json = read_text_file(file, "tokenizer"),
                       .where = file.string(),
                       .rows = files.config.vocab_size,
                       .bos = tokenizer.bos_id(),
                       .eos = tokenizer.eos_id(),
                       .chat_template = chat_template_text(folder)};
  std::vector<TokenId> around = tokenizer.ids("");
  made.adds_bos = tokenizer.adds_bos();
  if (made.adds_bos) around.erase(around.begin());
  made.adds_eos = !around.empty() && made.eos == around.back();
  if (around.size() > (made.adds_eos ? 1 : 0))
    throw CheckpointError(cat(file.string(), ": post_processor: expected BOS before a text, EOS after it, or neither, ",
                              "got others: a GGUF file cannot say it"));
  std::vector<int64_t> ends = files.config.eos_ids;
  if (!ends.empty() && std::ranges::find(ends, made.eos) == ends.end()) made.eos = ends.front();
  for (const int64_t id : ends)
    if (id != made.eos && std::ranges::count(made.more_ends, id) == 0) made.more_ends.push_back(id);
  const ConfigJson json = config_of_language_model(files);
  if (const auto pad = json.find("pad_token_id"); pad != json.end() && pad->is_number_integer() && *pad >= 0)
    made.pad = pad->get<int64_t>();
  return made;
}

}  // namespace lancet
