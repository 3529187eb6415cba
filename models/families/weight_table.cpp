#include "lancet/models/weight_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>

#include "lancet/checkpoint/model_place.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant_formats/find_packed.h"
#include "weight_names.h"
#include "weight_rows.h"

namespace lancet {
namespace {

constexpr std::string_view kNumberPlace = "{}";

/// Returns the name with `number` in the first place for a number.
template <typename Number>
std::string numbered(std::string_view name, const Number& number) {
  const size_t at = name.find(kNumberPlace);
  if (at == std::string_view::npos) return std::string(name);
  return cat(name.substr(0, at), number, name.substr(at + kNumberPlace.size()));
}

/// Whether the name is the pattern with a number below `end` in its place for a number.
bool is_numbered(std::string_view pattern, std::string_view name, int64_t end) {
  const size_t at = pattern.find(kNumberPlace);
  if (at == std::string_view::npos) return false;
  const std::string_view after = pattern.substr(at + kNumberPlace.size());
  if (name.size() <= at + after.size() || !name.starts_with(pattern.substr(0, at)) || !name.ends_with(after))
    return false;
  const std::optional<int64_t> number = parse_whole_number(name.substr(at, name.size() - at - after.size()));
  return number && *number >= 0 && *number < end && name == numbered(pattern, *number);
}

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// The numbers of outputs of all weights that are stored under one name: of this tensor, and of those before it there.
struct Neighbours {
  int64_t all = 0;
  int64_t before = 0;
};
Neighbours neighbours_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  Neighbours sizes;
  bool passed = false;
  for (const WeightRow& other : config.family->weights) {
    passed = passed || &other == &row;
    if (other.name != row.name || !is_there(config, other, layer)) continue;
    const int64_t size = size_of(config, role_of(other.kind).out, layer);
    sizes.all += size;
    if (!passed) sizes.before += size;
  }
  return sizes;
}

/// Returns the shape of the tensor that has a weight of all experts, and perhaps another weight.
std::vector<int64_t> shape_by_expert(const ModelConfig& config, const WeightRow& row, const Neighbours& sizes,
                                     int64_t in) {
  const int64_t count = config.experts.count;
  const Axis axis = role_of(row.kind).in;
  if (axis == Axis::kNone) return {count, sizes.all / count};
  std::vector<int64_t> shape{count, sizes.all / count, in};
  if (axis == Axis::kFfn) shape = {count, sizes.all, config.experts.d_ffn};
  if (row.layout == Layout::kByExpertColumns) std::swap(shape[1], shape[2]);
  return shape;
}

/// Gives a weight whose name has "{k,v}" the two tensors that are meant, and the name of both joined.
void name_parts(WeightSpec& spec) {
  constexpr std::string_view kParts = "{k,v}";
  const std::string name = spec.name;
  const auto with = [&](const char* part) { return std::string(name).replace(name.find(kParts), kParts.size(), part); };
  spec.name = with("kv");
  spec.stored.tensors = {with("k"), with("v")};
}

WeightSpec spec_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  const WeightRole& role = role_of(row.kind);
  const int64_t out = size_of(config, role.out, layer), in = size_of(config, role.in, layer);
  const bool is_matrix = role.in != Axis::kNone;
  const Neighbours sizes = neighbours_of(config, row, layer);
  const int64_t groups = groups_of(config, row.layout);
  const std::string name = numbered(row.name, layer);
  WeightSpec spec{.id = {row.kind, layer},
                  .name = name,
                  .shape = is_matrix ? std::vector{out, in} : std::vector{out},
                  .stored = {.tensors = {name},
                             .shape = is_matrix ? std::vector{sizes.all, in} : std::vector{sizes.all},
                             .layout = row.layout,
                             .groups = groups,
                             .begin = sizes.before / groups}};
  if (is_of_experts(row)) spec.experts = config.experts.count;
  if (has_all_experts(row.layout)) {
    spec.stored.shape = shape_by_expert(config, row, sizes, in);
  } else if (is_of_experts(row)) {
    spec.name = numbered(name, "*");
    spec.stored.tensors.clear();
    for (int64_t expert = 0; expert < config.experts.count; ++expert)
      spec.stored.tensors.push_back(numbered(name, expert));
    spec.stored.shape[static_cast<size_t>(spec.parts_axis())] /= config.experts.count;
  }
  if (row.layout == Layout::kLatentParts) name_parts(spec);
  if (row.layout == Layout::kOneRow) spec.stored.shape.insert(spec.stored.shape.begin(), 1);
  if (role.out == Axis::kScalar) spec.stored.shape.clear();
  const RecurrenceConfig& mixer = config.recurrence;
  if (role.out == Axis::kMixerTaps) spec.stored.shape = {mixer.channels(), 1, mixer.taps};
  if (role.out == Axis::kMixerDecays && mixer.is_selective()) spec.stored.shape = {mixer.value_heads, mixer.key_dim};
  if (config.head_norm == HeadNorm::kEachHead && (role.out == Axis::kQueryNorm || role.out == Axis::kKeyNorm))
    spec.stored.shape = {out / config.head_dim, config.head_dim};
  if (row.layout == Layout::kColumns) std::reverse(spec.stored.shape.begin(), spec.stored.shape.end());
  if (sizes.all > out) spec.name += part_text(row.kind);
  return spec;
}

bool in_layer(const WeightRow& row) { return role_of(row.kind).place == WeightPlace::kLayer; }

const WeightRow* find_row(const ModelConfig& config, WeightId id) {
  const WeightRow* found = nullptr;  // a row that the fields rule out is only used if there is no other
  for (const WeightRow& row : config.family->weights)
    if (row.kind == id.kind && (found == nullptr || is_there(config, row, id.layer))) found = &row;
  return found;
}

bool is_weight_type(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

/// Finds the matrices of experts that are in one tensor, if that is quantised. Returns the same as find_quantised().
bool find_quantised_experts(const ModelConfig& config, const Checkpoint& checkpoint, WeightSpec& spec,
                            std::vector<std::string>& problems) {
  const size_t known_problems = problems.size();
  const std::vector<int64_t>& shape = spec.stored.shape;
  const bool is_turned = spec.stored.layout == Layout::kByExpertColumns;
  const MatrixPlace place{spec.stored.tensors.front(), shape[is_turned ? 2 : 1], shape[is_turned ? 1 : 2],
                          spec.experts};
  const std::optional<PackedSpec> all = find_packed(*config.quantised, checkpoint, place, problems);
  if (!all) return problems.size() > known_problems;
  const int64_t rows = spec.shape.front() / (spec.parts_axis() == 0 ? spec.experts : 1);
  for (int64_t expert = 0; expert < spec.experts; ++expert) {
    PackedSpec own = *all;
    own.name = cat(spec.name, "[", expert, "]");
    own.rows = rows;
    own.slice = {spec.experts, expert, spec.stored.begin, is_turned ? all->rows / rows : 1};
    own.stored_bytes = all->stored_bytes * rows / (all->rows * spec.experts);
    spec.packed.push_back(std::move(own));
  }
  return true;
}

/// Returns the shapes of the tensors with keys and values of latent attention's heads, as matrices.
std::array<std::vector<int64_t>, 2> shapes_of_latents(const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  return {std::vector{config.n_heads * latent.rank, latent.plain_dim},
          std::vector{config.n_heads * latent.value_dim, latent.rank}};
}

/// Likewise of two tensors. Returns the same as find_quantised().
bool find_quantised_latents(const ModelConfig& config, const Checkpoint& checkpoint, WeightSpec& spec,
                            std::vector<std::string>& problems) {
  const size_t known_problems = problems.size();
  const auto shapes = shapes_of_latents(config);
  for (size_t i = 0; i < shapes.size(); ++i)
    if (std::optional<PackedSpec> packed =
            find_packed(*config.quantised, checkpoint, {spec.stored.tensors[i], shapes[i][0], shapes[i][1]}, problems))
      spec.packed.push_back(std::move(*packed));
  if (spec.packed.size() == 1 && problems.size() == known_problems)
    problems.push_back(cat(spec.name, ": one of its two tensors is quantised, expected both or none"));
  return !spec.packed.empty() || problems.size() > known_problems;
}

/// Finds the matrix's tensors if they are quantised. Returns whether they are, or cannot be read.
bool find_quantised(const ModelConfig& config, const Checkpoint& checkpoint, WeightSpec& spec,
                    std::vector<std::string>& problems) {
  if (config.quantised == nullptr) return false;
  if (has_all_experts(spec.stored.layout) && spec.shape.size() == 2)
    return find_quantised_experts(config, checkpoint, spec, problems);
  if (spec.shape.size() != 2 || spec.stored.shape.size() != 2) return false;
  if (spec.stored.layout == Layout::kLatentParts) return find_quantised_latents(config, checkpoint, spec, problems);
  const size_t known_problems = problems.size();
  // quantised matrices are [out, in], even if the family stores its own as [in, out]
  const bool is_turned = spec.stored.layout == Layout::kColumns;
  const int64_t rows = spec.stored.shape[is_turned ? 1 : 0], columns = spec.stored.shape[is_turned ? 0 : 1];
  for (const std::string& name : spec.stored.tensors)
    if (std::optional<PackedSpec> packed = find_packed(*config.quantised, checkpoint, {name, rows, columns}, problems))
      spec.packed.push_back(std::move(*packed));
  if (!spec.packed.empty()) {
    spec.stored.shape = {rows, columns};
    if (is_turned) spec.stored.layout = Layout::kRows;
  }
  if (!spec.packed.empty() && spec.packed.size() < spec.stored.tensors.size() && problems.size() == known_problems)
    problems.push_back(cat(spec.name, ": ", spec.packed.size(), " of ", spec.stored.tensors.size(),
                           " experts are quantised, expected all or none"));
  return !spec.packed.empty() || problems.size() > known_problems;
}

void check_stored(const ModelConfig& config, const WeightSpec& spec, const Checkpoint& checkpoint,
                  std::vector<std::string>& problems) {
  const StoredPlace& stored = spec.stored;
  for (size_t i = 0; i < stored.tensors.size(); ++i) {
    const std::string& name = stored.tensors[i];
    const std::vector<int64_t> shape =
        stored.layout == Layout::kLatentParts ? shapes_of_latents(config)[i] : stored.shape;
    if (!checkpoint.contains(name)) {
      const std::vector<std::string> absent = absent_names(checkpoint);
      problems.push_back(cat(name, ": missing, expected shape ", shape_text(shape),
                             std::ranges::find(absent, name) == absent.end()
                                 ? ""
                                 : "; the index names it, and no shard has it: download the model again"));
      continue;
    }
    const TensorInfo& info = checkpoint.info(name);
    if (info.shape != shape)
      problems.push_back(
          cat(name, ": shape ", shape_text(info.shape), ", expected ", shape_text(shape), " from config.json"));
    if (!is_weight_type(info.dtype))
      problems.push_back(cat(name, ": type ", dtype_name(info.dtype),
                             ", expected BF16, F16, F32 or F64: if the matrix is quantised, config.json has to say how "
                             "(quantization_config)"));
    else if (info.dtype != checkpoint.info(stored.tensors.front()).dtype)
      problems.push_back(cat(name, ": type ", dtype_name(info.dtype), ", expected ",
                             dtype_name(checkpoint.info(stored.tensors.front()).dtype), ", which ",
                             stored.tensors.front(), " has"));
  }
}

bool is_ignored(const ModelConfig& config, const std::string& name) {
  for (const std::string_view pattern : config.family->ignored_tensors) {
    if (pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1))) return true;
    if (pattern == name || is_numbered(pattern, name, config.n_layers)) return true;
  }
  return false;
}

/// Returns all names, also those under which tied weights may be stored.
std::set<std::string> known_names(const ModelConfig& config, const std::vector<WeightSpec>& table,
                                  const PrefixList& names) {
  std::set<std::string> known;
  for (const WeightSpec& spec : table)
    for (std::string& name : spec.tensor_names()) known.insert(std::move(name));
  for (const WeightKind kind : {WeightKind::kEmbedding, WeightKind::kHead})
    if (config.tied_embeddings) known.insert(renamed(std::string(find_row(config, {kind})->name), names));
  return known;
}

}  // namespace

int64_t WeightSpec::size() const { return product(shape); }

std::vector<std::string> WeightSpec::tensor_names() const {
  if (packed.empty()) return stored.tensors;
  std::vector<std::string> names;
  for (const PackedSpec& matrix : is_sliced() ? std::span(packed).first(1) : std::span(packed))
    for (const PackedPart& part : matrix.parts) names.push_back(part.tensor);
  return names;
}

int64_t WeightSpec::stored_bytes(DType dtype) const {
  if (packed.empty()) return size() * bytes_per_element(dtype);
  int64_t bytes = 0;
  for (const PackedSpec& matrix : packed) bytes += matrix.stored_bytes;
  return bytes;
}

bool WeightSpec::is_whole() const {
  if (stored.layout == Layout::kLatentParts) return true;
  return product(shape) == static_cast<int64_t>(stored.tensors.size()) * product(stored.shape);
}

bool has_weight(const ModelConfig& config, WeightKind kind) {
  return std::ranges::any_of(config.family->weights, [&](const WeightRow& row) {
    if (row.kind != kind) return false;
    for (int64_t layer = 0; layer < (in_layer(row) ? config.n_layers : 1); ++layer)
      if (is_there(config, row, layer)) return true;
    return false;
  });
}

WeightSpec weight_spec(const ModelConfig& config, WeightId id) {
  const WeightRow* row = find_row(config, id);
  if (row == nullptr) throw std::logic_error("the family's table lacks a kind of weight");
  return spec_of(config, *row, id.layer);
}

std::string weight_name(const ModelConfig& config, WeightId id) { return weight_spec(config, id).name; }

std::vector<WeightSpec> weight_table(const ModelConfig& config) {
  std::vector<WeightSpec> table;
  for (const WeightRow& row : config.family->weights)
    if (!in_layer(row) && is_there(config, row, 0)) table.push_back(spec_of(config, row, 0));
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    for (WeightSpec& spec : layer_table(config, layer)) table.push_back(std::move(spec));
  return table;
}

std::vector<WeightSpec> layer_table(const ModelConfig& config, int64_t layer) {
  std::vector<WeightSpec> table;
  for (const WeightRow& row : config.family->weights)
    if (in_layer(row) && is_there(config, row, layer)) table.push_back(spec_of(config, row, layer));
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

std::vector<std::string> tied_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::vector<std::string> found;
  if (!config.tied_embeddings) return found;
  const PrefixList names = names_used(config, weight_table(config), checkpoint);
  for (const WeightKind kind : {WeightKind::kEmbedding, WeightKind::kHead})
    if (std::string name = renamed(std::string(find_row(config, {kind})->name), names); checkpoint.contains(name))
      found.push_back(std::move(name));
  return found;
}

namespace {

/// Programs whose packed weights lancet does not read, by the ends of their tensors' names.
struct PackedElsewhere {
  std::string_view ending, program;
};
constexpr PackedElsewhere kPackedElsewhere[] = {
    {".q_weight", "ExLlamaV2 (EXL2)"}, {".trellis", "ExLlamaV3 (EXL3)"}, {".W_q", "HQQ"}, {".biases", "MLX"}};

/// Says what the tensors are if another program has packed them; empty if this is not known.
std::string packed_elsewhere(const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.tensor_names())
    for (const PackedElsewhere& packed : kPackedElsewhere)
      if (name.ends_with(packed.ending))
        return cat(" (", packed.program, " has packed them, which lancet does not read: take the model that is not ",
                   "quantised)");
  return "";
}

[[noreturn]] void refuse_weights(const ModelConfig& config, const Checkpoint& checkpoint,
                                 std::vector<std::string> problems) {
  constexpr size_t kShown = 20;
  const size_t total = problems.size();
  if (total > kShown) {
    problems.resize(kShown);
    problems.push_back(cat("... and ", total - kShown, " more"));
  }
  const std::string packed = config.quantised == nullptr ? packed_elsewhere(checkpoint) : "";
  throw CheckpointError(cat(checkpoint.folder().string(), ": the weights do not fit config.json", packed, ":\n  ",
                            join(problems, "\n  ")));
}

}  // namespace

std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::vector<WeightSpec> table = weight_table(config);
  const PrefixList names = names_used(config, table, checkpoint);
  std::vector<std::string> problems;
  for (WeightSpec& spec : table) {
    for (std::string& name : spec.stored.tensors) name = renamed(name, names);
    // models with tied embeddings may store the shared matrix under either name
    if (config.tied_embeddings && spec.id.kind == WeightKind::kEmbedding)
      if (std::string head = renamed(std::string(find_row(config, {WeightKind::kHead})->name), names);
          !checkpoint.contains(spec.stored.tensors.front()) && checkpoint.contains(head))
        spec.stored.tensors = {std::move(head)};
    if (!find_quantised(config, checkpoint, spec, problems)) check_stored(config, spec, checkpoint, problems);
  }
  const std::set<std::string> known = known_names(config, table, names);
  for (const std::string& name : checkpoint.tensor_names())
    if (!known.contains(name) && !is_ignored(config, name) && !is_ignored(config, own_name(name, names)) &&
        !(config.quantised != nullptr && config.quantised->leaves_aside(name)))
      problems.push_back(cat(name, ": a tensor that a ", config.family->name, " of this config.json does not have"));
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());  // each part of a tensor reported it
  if (problems.empty()) return table;
  refuse_weights(config, checkpoint, std::move(problems));
}

}  // namespace lancet
