#include "lancet/models/weight_table.h"

#include <algorithm>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string with_layer(std::string_view name, int64_t layer) {
  const size_t at = name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return cat(name.substr(0, at), layer, name.substr(at + 2));
}

/// Empty: the model has no such weight.
std::vector<int64_t> weight_shape(const ModelConfig& c, WeightKind kind) {
  const int64_t d_query = c.n_heads * c.head_dim;
  const int64_t d_kv = c.n_kv_heads * c.head_dim;
  const auto bias = [](bool present, int64_t size) {
    return present ? std::vector<int64_t>{size} : std::vector<int64_t>{};
  };
  switch (kind) {
    case WeightKind::kEmbedding:
      return {c.vocab_size, c.d_model};
    case WeightKind::kHead:
      return c.tied_embeddings ? std::vector<int64_t>{} : std::vector<int64_t>{c.vocab_size, c.d_model};
    case WeightKind::kAttnNorm:
    case WeightKind::kMlpNorm:
    case WeightKind::kFinalNorm:
      return {c.d_model};
    case WeightKind::kQuery:
      return {d_query, c.d_model};
    case WeightKind::kKey:
    case WeightKind::kValue:
      return {d_kv, c.d_model};
    case WeightKind::kAttnOut:
      return {c.d_model, d_query};
    case WeightKind::kQueryBias:
      return bias(c.attention_bias, d_query);
    case WeightKind::kKeyBias:
    case WeightKind::kValueBias:
      return bias(c.attention_bias, d_kv);
    case WeightKind::kAttnOutBias:
      return bias(c.attention_bias, c.d_model);
    case WeightKind::kGate:
    case WeightKind::kUp:
      return {c.d_ffn, c.d_model};
    case WeightKind::kDown:
      return {c.d_model, c.d_ffn};
    case WeightKind::kGateBias:
    case WeightKind::kUpBias:
      return bias(c.mlp_bias, c.d_ffn);
    case WeightKind::kDownBias:
      return bias(c.mlp_bias, c.d_model);
  }
  return {};
}

bool is_weight_type(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

void check_stored(const WeightSpec& spec, const Checkpoint& checkpoint, std::vector<std::string>& problems) {
  if (!checkpoint.contains(spec.stored_name)) {
    problems.push_back(cat(spec.name, ": missing, expected shape ", shape_text(spec.shape)));
    return;
  }
  const TensorInfo& info = checkpoint.info(spec.stored_name);
  if (info.shape != spec.shape)
    problems.push_back(cat(spec.stored_name, ": shape ", shape_text(info.shape), ", expected ", shape_text(spec.shape),
                           " from config.json"));
  if (!is_weight_type(info.dtype))
    problems.push_back(
        cat(spec.stored_name, ": type ", dtype_name(info.dtype),
            ", expected BF16, F16, F32 or F64: quantised checkpoints cannot be edited, convert to bf16 first"));
}

std::set<std::string> known_names(const ModelConfig& config) {
  std::set<std::string> names;
  for (const WeightSpec& spec : weight_table(config)) names.insert(spec.name);
  if (config.tied_embeddings) names.insert(weight_name(config, {WeightKind::kHead}));
  for (const std::string_view ignored : config.family->ignored_tensors)
    for (int64_t layer = 0; layer < config.n_layers; ++layer) names.insert(with_layer(ignored, layer));
  return names;
}

}  // namespace

std::string weight_name(const ModelConfig& config, WeightId id) {
  for (const WeightName& row : config.family->weights)
    if (row.kind == id.kind) return with_layer(row.name, id.layer);
  throw std::logic_error("the family's table lacks a kind of weight");
}

std::vector<WeightSpec> weight_table(const ModelConfig& config) {
  std::vector<WeightSpec> table;
  const auto add = [&](const WeightName& row, int64_t layer) {
    const std::vector<int64_t> shape = weight_shape(config, row.kind);
    if (shape.empty()) return;
    const std::string name = with_layer(row.name, layer);
    table.push_back({{row.kind, layer}, name, shape, name});
  };
  const auto in_layer = [](const WeightName& row) { return row.name.find("{}") != std::string_view::npos; };
  for (const WeightName& row : config.family->weights)
    if (!in_layer(row)) add(row, 0);
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    for (const WeightName& row : config.family->weights)
      if (in_layer(row)) add(row, layer);
  return table;
}

std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::vector<WeightSpec> table = weight_table(config);
  std::vector<std::string> problems;
  for (WeightSpec& spec : table) {
    // Tied models may store the shared matrix under either name.
    if (config.tied_embeddings && spec.id.kind == WeightKind::kEmbedding && !checkpoint.contains(spec.name))
      if (std::string head = weight_name(config, {WeightKind::kHead}); checkpoint.contains(head))
        spec.stored_name = std::move(head);
    check_stored(spec, checkpoint, problems);
  }
  const std::set<std::string> known = known_names(config);
  for (const std::string& name : checkpoint.tensor_names())
    if (!known.contains(name))
      problems.push_back(cat(name, ": a tensor that a ", config.family->name, " of this config.json does not have"));
  if (problems.empty()) return table;
  constexpr size_t kShown = 20;
  const size_t total = problems.size();
  if (total > kShown) {
    problems.resize(kShown);
    problems.push_back(cat("... and ", total - kShown, " more"));
  }
  throw CheckpointError(
      cat(checkpoint.folder().string(), ": the weights do not fit config.json:\n  ", join(problems, "\n  ")));
}

}  // namespace lancet
