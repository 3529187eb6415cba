#include "lancet/models/weight_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string with_layer(std::string_view name, int64_t layer) {
  const size_t at = name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return cat(name.substr(0, at), layer, name.substr(at + 2));
}

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t size_of(const ModelConfig& c, Axis axis) {
  const bool by_head = c.head_norm == HeadNorm::kPerHead;
  switch (axis) {
    case Axis::kNone:
      return 1;
    case Axis::kVocab:
      return c.vocab_size;
    case Axis::kPositions:
      return c.max_positions;
    case Axis::kModel:
      return c.d_model;
    case Axis::kFfn:
      return c.d_ffn;
    case Axis::kQuery:
      return c.n_heads * c.head_dim;
    case Axis::kKeyValue:
      return c.n_kv_heads * c.head_dim;
    case Axis::kQueryNorm:
      return by_head ? c.head_dim : c.n_heads * c.head_dim;
    case Axis::kKeyNorm:
      return by_head ? c.head_dim : c.n_kv_heads * c.head_dim;
  }
  return 0;
}

/// Whether the fields leave a weight that the family's table has.
bool is_there(const ModelConfig& config, WeightKind kind) {
  switch (kind) {
    case WeightKind::kHead:
      return !config.tied_embeddings;
    case WeightKind::kHeadBias:
      return config.head_bias;
    case WeightKind::kQueryBias:
    case WeightKind::kKeyBias:
    case WeightKind::kValueBias:
      return config.qkv_bias;
    case WeightKind::kAttnOutBias:
      return config.attention_out_bias;
    case WeightKind::kGateBias:
    case WeightKind::kUpBias:
    case WeightKind::kDownBias:
      return config.mlp_bias;
    case WeightKind::kQueryNorm:
    case WeightKind::kKeyNorm:
      return config.head_norm != HeadNorm::kNone;
    default:
      return true;
  }
}

/// What of a tensor's parts a name says: "[up]".
std::string_view part_text(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQuery:
    case WeightKind::kQueryBias:
      return "[q]";
    case WeightKind::kKey:
    case WeightKind::kKeyBias:
      return "[k]";
    case WeightKind::kValue:
    case WeightKind::kValueBias:
      return "[v]";
    case WeightKind::kGate:
    case WeightKind::kGateBias:
      return "[gate]";
    default:
      return "[up]";
  }
}

/// Outputs of all weights that are stored under one name: of this one's tensor, and of those before it there.
struct Neighbours {
  int64_t all = 0;
  int64_t before = 0;
};
Neighbours neighbours_of(const ModelConfig& config, const WeightRow& row) {
  Neighbours sizes;
  bool passed = false;
  for (const WeightRow& other : config.family->weights) {
    passed = passed || &other == &row;
    if (other.name != row.name || !is_there(config, other.kind)) continue;
    const int64_t size = size_of(config, role_of(other.kind).out);
    sizes.all += size;
    if (!passed) sizes.before += size;
  }
  return sizes;
}

WeightSpec spec_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  const WeightRole& role = role_of(row.kind);
  const int64_t out = size_of(config, role.out), in = size_of(config, role.in);
  const bool is_matrix = role.in != Axis::kNone;
  const Neighbours sizes = neighbours_of(config, row);
  const int64_t groups = row.layout == Layout::kByHead ? config.n_heads : 1;
  WeightSpec spec{.id = {row.kind, layer},
                  .name = with_layer(row.name, layer),
                  .shape = is_matrix ? std::vector{out, in} : std::vector{out},
                  .stored = {.name = with_layer(row.name, layer),
                             .shape = is_matrix ? std::vector{sizes.all, in} : std::vector{sizes.all},
                             .layout = row.layout,
                             .groups = groups,
                             .begin = sizes.before / groups}};
  if (row.layout == Layout::kColumns) std::reverse(spec.stored.shape.begin(), spec.stored.shape.end());
  if (sizes.all > out) spec.name += part_text(row.kind);
  return spec;
}

bool in_layer(const WeightRow& row) { return role_of(row.kind).place == WeightPlace::kLayer; }

const WeightRow* find_row(const ModelConfig& config, WeightKind kind) {
  for (const WeightRow& row : config.family->weights)
    if (row.kind == kind) return &row;
  return nullptr;
}

bool is_weight_type(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

void check_stored(const WeightSpec& spec, const Checkpoint& checkpoint, std::vector<std::string>& problems) {
  const StoredPlace& stored = spec.stored;
  if (!checkpoint.contains(stored.name)) {
    problems.push_back(cat(stored.name, ": missing, expected shape ", shape_text(stored.shape)));
    return;
  }
  const TensorInfo& info = checkpoint.info(stored.name);
  if (info.shape != stored.shape)
    problems.push_back(cat(stored.name, ": shape ", shape_text(info.shape), ", expected ", shape_text(stored.shape),
                           " from config.json"));
  if (!is_weight_type(info.dtype))
    problems.push_back(
        cat(stored.name, ": type ", dtype_name(info.dtype),
            ", expected BF16, F16, F32 or F64: quantised checkpoints cannot be edited, convert to bf16 first"));
}

/// A family's name as one of its sets of other names has it.
std::string renamed(const std::string& name, const std::vector<NamePrefix>& prefixes) {
  for (const NamePrefix& prefix : prefixes)
    if (name.starts_with(prefix.from)) return cat(prefix.to, std::string_view(name).substr(prefix.from.size()));
  return name;
}

/// The set of names that the checkpoint has most of.
std::vector<NamePrefix> names_used(const ModelConfig& config, const std::vector<WeightSpec>& table,
                                   const Checkpoint& checkpoint) {
  std::vector<NamePrefix> best;
  int64_t most = -1;
  std::vector<std::vector<NamePrefix>> choices{{}};
  choices.insert(choices.end(), config.family->other_names.begin(), config.family->other_names.end());
  for (const std::vector<NamePrefix>& names : choices) {
    const int64_t found = std::count_if(table.begin(), table.end(), [&](const WeightSpec& spec) {
      return checkpoint.contains(renamed(spec.stored.name, names));
    });
    if (found > most) best = names;
    most = std::max(most, found);
  }
  return best;
}

bool is_ignored(const ModelConfig& config, const std::string& name) {
  for (const std::string_view pattern : config.family->ignored_tensors) {
    if (pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1))) return true;
    const int64_t layers = pattern.find("{}") == std::string_view::npos ? 1 : config.n_layers;
    for (int64_t layer = 0; layer < layers; ++layer)
      if (name == with_layer(pattern, layer)) return true;
  }
  return false;
}

/// With the names that tied weights may also be stored under.
std::set<std::string> known_names(const ModelConfig& config, const std::vector<WeightSpec>& table,
                                  const std::vector<NamePrefix>& names) {
  std::set<std::string> known;
  for (const WeightSpec& spec : table) known.insert(spec.stored.name);
  for (const WeightKind kind : {WeightKind::kEmbedding, WeightKind::kHead})
    if (config.tied_embeddings) known.insert(renamed(std::string(find_row(config, kind)->name), names));
  return known;
}

}  // namespace

int64_t WeightSpec::size() const { return product(shape); }

bool WeightSpec::is_whole() const { return product(shape) == product(stored.shape); }

bool has_weight(const ModelConfig& config, WeightKind kind) {
  return find_row(config, kind) != nullptr && is_there(config, kind);
}

WeightSpec weight_spec(const ModelConfig& config, WeightId id) {
  const WeightRow* row = find_row(config, id.kind);
  if (row == nullptr) throw std::logic_error("the family's table lacks a kind of weight");
  return spec_of(config, *row, id.layer);
}

std::string weight_name(const ModelConfig& config, WeightId id) { return weight_spec(config, id).name; }

std::vector<WeightSpec> weight_table(const ModelConfig& config) {
  std::vector<WeightSpec> table;
  const auto add = [&](const WeightRow& row, int64_t layer) {
    if (is_there(config, row.kind)) table.push_back(spec_of(config, row, layer));
  };
  for (const WeightRow& row : config.family->weights)
    if (!in_layer(row)) add(row, 0);
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    for (const WeightRow& row : config.family->weights)
      if (in_layer(row)) add(row, layer);
  return table;
}

bool shapes_keys(const ModelConfig& config, WeightId id, int64_t layer) {
  const WeightRole& role = role_of(id.kind);
  if (role.place != WeightPlace::kLayer) return role.place == WeightPlace::kEmbedding;
  if (id.layer != layer) return id.layer < layer;
  if (role.part == LayerPart::kMlpOutput) return false;
  if (role.part == LayerPart::kMlpInput || config.order == BlockOrder::kSequential) return true;
  const bool is_norm = id.kind == WeightKind::kAttnNorm || id.kind == WeightKind::kAttnNormBias;
  return is_norm && !has_weight(config, WeightKind::kMlpNorm);
}

int64_t count_parameters(const ModelConfig& config) {
  int64_t parameters = 0;
  for (const WeightSpec& spec : weight_table(config)) parameters += spec.size();
  return parameters;
}

std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::vector<WeightSpec> table = weight_table(config);
  const std::vector<NamePrefix> names = names_used(config, table, checkpoint);
  std::vector<std::string> problems;
  for (WeightSpec& spec : table) {
    spec.stored.name = renamed(spec.stored.name, names);
    // Tied models may store the shared matrix under either name.
    if (config.tied_embeddings && spec.id.kind == WeightKind::kEmbedding && !checkpoint.contains(spec.stored.name))
      if (std::string head = renamed(std::string(find_row(config, WeightKind::kHead)->name), names);
          checkpoint.contains(head))
        spec.stored.name = std::move(head);
    check_stored(spec, checkpoint, problems);
  }
  const std::set<std::string> known = known_names(config, table, names);
  for (const std::string& name : checkpoint.tensor_names())
    if (!known.contains(name) && !is_ignored(config, name))
      problems.push_back(cat(name, ": a tensor that a ", config.family->name, " of this config.json does not have"));
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());  // of each part of a tensor
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
