// `lancet inspect`: what a model folder has, and what lancet understands of it.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "lancet/checkpoint/model_place.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_file.h"
#include "lancet/models/unread_keys.h"
#include "lancet/plan/model_session.h"
#include "lancet/training/values.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What is known about a model: its configuration and, if its weights are there, its files.
struct Inspected {
  std::filesystem::path folder;
  ModelConfig config;
  std::optional<ModelFiles> files;
};

/// Whether the folder has weight files of any format. Those that cannot be read are refused by name.
bool has_weight_files(const std::filesystem::path& folder) {
  constexpr std::string_view kEndings[] = {".safetensors", ".bin", ".pt", ".pth", ".gguf"};
  const std::filesystem::directory_iterator files(folder);
  return std::any_of(begin(files), end(files), [&](const std::filesystem::directory_entry& file) {
    const std::string name = file.path().filename().string();
    return name.ends_with(".index.json") ||
           std::any_of(std::begin(kEndings), std::end(kEndings),
                       [&](std::string_view ending) { return name.ends_with(ending); });
  });
}

Inspected inspect(const std::filesystem::path& model) {
  if (find_gguf(model)) {
    ModelFiles files = open_model(model, {});
    return {files.checkpoint.folder(), files.config, std::move(files)};
  }
  const std::filesystem::path config = std::filesystem::is_directory(model) ? model / "config.json" : model;
  // config.json alone is enough to say what is understood
  if (std::filesystem::is_regular_file(config) && (config == model || !has_weight_files(model))) {
    DescribedModel described = describe_model(model, {});
    warn_of_unread_keys(config, unread_keys(config_text_of(config), {}));
    return {std::move(described.folder), std::move(described.config), std::nullopt};
  }
  ModelFiles files = open_model(model, {});
  return {files.checkpoint.folder(), files.config, std::move(files)};
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "SiLU";
    case Activation::kGelu:
      return "GELU";
    case Activation::kGeluTanh:
      return "GELU (tanh)";
    case Activation::kRelu:
      return "ReLU";
    case Activation::kReluSquared:
      return "squared ReLU";
    case Activation::kXielu:
      return "xIELU";
    case Activation::kLimitedSwish:
      return "cut swish";
  }
  return "";
}

std::string norm_text(const ModelConfig& config) {
  const bool adds_one = config.norm == NormKind::kRmsPlusOne || config.norm == NormKind::kLayerPlusOne;
  const bool is_layer = config.norm == NormKind::kLayer || config.norm == NormKind::kLayerPlusOne;
  std::string text = cat(is_layer ? "LayerNorm" : "RMSNorm", adds_one ? " by 1 + w" : "");
  if (config.bare_norms) text += " without weights";
  const bool before = config.bare_norms || has_weight(config, WeightKind::kAttnNorm),
             after = has_weight(config, WeightKind::kMlpPostNorm);
  text += before && after ? ", before and after each block" : after ? ", after each block" : ", before each block";
  if (config.head_norm == HeadNorm::kPerHead || config.head_norm == HeadNorm::kEachHead)
    text += "; queries and keys by head";
  if (config.head_norm == HeadNorm::kWhole) text += "; queries and keys over all heads";
  return text;
}

std::string rope_text(const RopeConfig& rope, int64_t head_dim) {
  std::string text = cat("rotary, base ", rope.theta);
  if (rope.dim < head_dim) text += cat(", ", rope.dim, " of each head's ", head_dim);
  switch (rope.scaling) {
    case RopeConfig::Scaling::kNone:
      break;
    case RopeConfig::Scaling::kLinear:
      text += cat(", divided by ", rope.factor);
      break;
    case RopeConfig::Scaling::kLlama3:
      text += cat(", Llama 3's scaling by ", rope.factor);
      break;
    case RopeConfig::Scaling::kLongRope:
      text += cat(", LongRoPE beyond ", rope.original_max_positions);
      break;
    case RopeConfig::Scaling::kYarn:
      text += cat(", YaRN by ", rope.factor, " of ", rope.original_max_positions);
      break;
    case RopeConfig::Scaling::kDynamic:
      text += ", scaled by nothing within them (dynamic)";
      break;
  }
  return text;
}

std::string positions_text(const ModelConfig& config) {
  if (has_weight(config, WeightKind::kPositions)) return cat(config.max_positions, ", learned");
  if (!config.alibi_slopes.empty()) return cat(config.max_positions, ", ALiBi");
  if (config.rope.dim == 0) return cat(config.max_positions, ", not embedded");
  std::string text = cat(config.max_positions, ", ", rope_text(config.rope, config.head_dim));
  if (config.window_rope) text += cat("; with a window: ", rope_text(*config.window_rope, config.head_dim));
  if (const auto without = std::ranges::count(config.rotary_layers, false); without > 0)
    text += cat("; none in ", without, " of ", config.n_layers, " layers");
  return text;
}

std::string window_text(const ModelConfig& config) {
  const int64_t layers = std::count(config.windowed.begin(), config.windowed.end(), true);
  if (layers == 0) return "none";
  return cat(config.window, " tokens in ", layers, " of ", config.n_layers, " layers");
}

std::string mixer_text(const ModelConfig& config) {
  const RecurrenceConfig& mixer = config.recurrence;
  const std::string where = cat(" in ", std::ranges::count(mixer.layers, true), " of ", config.n_layers, " layers, ");
  if (mixer.kind == MixerKind::kShortConvolution)
    return cat("a gated convolution", where, "over ", mixer.taps, " tokens");
  if (mixer.kind == MixerKind::kStateSpace)
    return cat("a state space", where, mixer.value_heads, " heads of ", mixer.value_dim, " with states of ",
               mixer.key_dim, ", ", mixer.key_heads, " groups, convolved over ", mixer.taps, " tokens");
  if (mixer.is_selective())
    return cat("a selective state space", where, mixer.value_heads, " channels with states of ", mixer.key_dim,
               ", convolved over ", mixer.taps, " tokens");
  return cat("a gated delta rule", where, mixer.key_heads, " heads of ", mixer.key_dim, ", ", mixer.value_heads, " of ",
             mixer.value_dim, " for values, convolved over ", mixer.taps, " tokens");
}

std::string mlp_size_text(const ModelConfig& config) {
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return cat(config.d_ffn);
  const std::string text =
      cat(experts.count, " experts of ", experts.d_ffn, ", ", experts.chosen, " of them for each token",
          experts.shared == 0 ? "" : cat(", beside one of ", experts.shared, " for all"));
  const int64_t dense = std::ssize(config.layers_with_mlp()) - std::ranges::count(experts.layers, true);
  return dense == 0 ? text : cat(text, " (in ", dense, " of ", config.n_layers, " layers one of ", config.d_ffn, ")");
}

/// Says where the MLP stands in its layer.
std::string mlp_place_text(const ModelConfig& config) {
  if (config.order == BlockOrder::kParallel) return ", beside attention";
  if (config.mlp_layers.empty()) return ", after attention";
  return cat(", alone in ", config.layers_with_mlp().size(), " of ", config.n_layers, " layers");
}

std::string mlp_text(const ModelConfig& config) {
  return cat(mlp_size_text(config), ", ", activation_name(config.activation), config.gated_mlp ? " gate" : ", no gate",
             mlp_place_text(config));
}

/// Says where methods that locate put their values.
std::string value_text(const ModelConfig& config) {
  return site_in(config, ValueSite::kBlockOut) == ValueSite::kBlockOut
             ? "the layer's output"
             : "the down projection's output (a norm comes after it)";
}

std::vector<std::string> biases_of(const ModelConfig& config) {
  std::vector<std::string> biases;
  if (config.qkv_bias) biases.emplace_back("queries, keys, values");
  if (config.attention_out_bias) biases.emplace_back("attention's output");
  if (config.mlp_bias || config.experts.mlp_biases) biases.emplace_back("MLP");
  if (config.head_bias) biases.emplace_back("head");
  return biases;
}

std::string latent_text(const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  const std::string queries = latent.query_rank == 0 ? "" : cat(", ", latent.query_rank, " for queries");
  return cat(latent.rank, " numbers for keys and values", queries, "; values of ", latent.value_dim);
}

/// The GGUF file that was inspected; nullptr: it is a folder.
const GgufFile* gguf_of(const Inspected& model) {
  const GgufSource* const source = model.files ? model.files->checkpoint.gguf() : nullptr;
  return source == nullptr ? nullptr : &source->file;
}

/// How many tensors a GGUF file has of each type, by the types' names.
std::map<std::string, int64_t> count_types(const GgufFile& file) {
  std::map<std::string, int64_t> counts;
  for (const GgufTensor& tensor : file.tensors()) ++counts[std::string(tensor.type->name)];
  return counts;
}

std::string stored_type_text(const Inspected& model) {
  const GgufFile* const file = gguf_of(model);
  if (file == nullptr) return std::string(dtype_name(model.config.dtype));
  std::vector<std::string> types;
  for (const auto& [type, count] : count_types(*file))
    types.push_back(cat(type, " (", counted(static_cast<size_t>(count), "tensor"), ")"));
  return join(types);
}

size_t count_shards(const Inspected& model) {
  const GgufFile* const file = gguf_of(model);
  return file == nullptr ? model.files->checkpoint.shards().size() : file->files().size();
}

Json model_json(const Inspected& model) {
  const ModelConfig& config = model.config;
  Json json = {{"format", "lancet-inspect-1"},
               {"folder", model.folder.string()},
               {"family", config.family->name},
               {"layers", config.n_layers},
               {"hidden_size", config.d_model},
               {"mlp_size", config.d_ffn},
               {"attention_heads", config.n_heads},
               {"key_value_heads", config.n_kv_heads},
               {"head_size", config.head_dim},
               {"vocabulary", config.vocab_size},
               {"positions", config.max_positions},
               {"tied_embeddings", config.tied_embeddings},
               {"norm", norm_text(config)},
               {"position_embedding", positions_text(config)},
               {"window", window_text(config)},
               {"mlp", mlp_text(config)},
               {"biases", biases_of(config)},
               {"attention_cap", config.attention_cap},
               {"logits_cap", config.logits_cap},
               {"values_at", value_text(config)},
               {"edited_weight", weight_name(config, {WeightKind::kDown, config.layers_with_mlp().front()})},
               {"parameters", count_parameters(config)},
               {"stored_type", dtype_name(config.dtype)}};
  if (config.quantised) json["quantised"] = config.quantised->method();
  if (const GgufFile* file = gguf_of(model)) json["gguf_types"] = count_types(*file);
  if (const ExpertsConfig& experts = config.experts; experts.count > 0) {
    json["experts"] = experts.count;
    json["experts_of_a_token"] = experts.chosen;
    json["expert_size"] = experts.d_ffn;
    json["layers_with_experts"] = std::ranges::count(experts.layers, true);
    if (experts.shared > 0) json["shared_expert_size"] = experts.shared;
  }
  if (!config.recurrence.layers.empty()) json["mixer"] = mixer_text(config);
  if (config.latent.rank > 0) json["latent_attention"] = latent_text(config);
  if (config.attention_sinks) json["attention_sinks"] = true;
  if (model.files) {
    json["shards"] = count_shards(model);
    json["tensor_bytes"] = model.files->checkpoint.tensor_bytes();
    json["tokenizer"] = model.files->tokenizer->description();
  }
  return json;
}

std::string model_text(const Inspected& model) {
  const ModelConfig& config = model.config;
  const std::vector<std::string> biases = biases_of(config);
  std::vector<std::pair<std::string, std::string>> facts{
      {gguf_of(model) == nullptr ? "folder" : "file", model.folder.string()},
      {"family", std::string(config.family->name)},
      {"layers", cat(config.n_layers)},
      {"hidden size", cat(config.d_model)},
      {"MLP", mlp_text(config)},
      {"attention heads",
       cat(config.n_heads, " (", config.n_kv_heads, " for keys/values), head size ", config.head_dim)},
      {"window", window_text(config)},
      {"norms", norm_text(config)},
      {"biases", biases.empty() ? "none" : join(biases)},
      {"vocabulary", cat(config.vocab_size)},
      {"positions", positions_text(config)},
      {"embeddings", config.tied_embeddings ? "tied to the head" : "separate from the head"},
      {"parameters", cat(count_parameters(config))},
      {"values are at", value_text(config)},
      {"edited weight", weight_name(config, {WeightKind::kDown, config.layers_with_mlp().front()})},
      {"stored type", stored_type_text(model)}};
  if (!config.recurrence.layers.empty())
    facts.emplace_back(config.recurrence.has_attention ? "beside attention" : "attention or", mixer_text(config));
  if (config.latent.rank > 0) facts.emplace_back("latent attention", latent_text(config));
  if (config.attention_sinks) facts.emplace_back("attention sinks", "a score a head");
  if (config.quantised) facts.emplace_back("quantised", config.quantised->method() + ", kept so in memory");
  if (config.attention_cap > 0) facts.emplace_back("scores capped at", cat(config.attention_cap));
  if (config.logits_cap > 0) facts.emplace_back("logits capped at", cat(config.logits_cap));
  if (model.files) {
    const Checkpoint& checkpoint = model.files->checkpoint;
    facts.emplace_back("shards", cat(count_shards(model), ", ", bytes_text(checkpoint.tensor_bytes())));
    facts.emplace_back("tokenizer", model.files->tokenizer->description());
  } else {
    facts.emplace_back("weights", "none beside config.json");
  }
  size_t width = 0;
  for (const auto& [name, value] : facts) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : facts)
    out += cat("  ", name, std::string(width - name.size() + 3, ' '), value, "\n");
  return out;
}

ExitCode run_inspect(const std::string& folder, const Output& output) {
  begin(output);
  const Inspected model = inspect(folder);
  std::cout << (output.json ? model_json(model).dump(1) + "\n" : model_text(model));
  return ExitCode::kOk;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(
      app, "inspect", "Show what lancet knows of a model; reads no weights, and needs none.\n  lancet inspect DIR");
  add_option(command, "model", *folder, "Model folder, or only its config.json").required().type("DIR");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_inspect(*folder, *output); });
}

}  // namespace lancet::cli
