#include "weight_loader.h"

#include <malloc.h>
#include <torch/types.h>
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/checkpoint/model_place.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_model.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"
#include "lancet/models/model_files.h"
#include "lancet/models/model_weights.h"
#include "lancet/models/neighbour_places.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/unread_keys.h"
#include "lancet/models/weight_table.h"
#include "lancet/quant/tensor_slice.h"
#include "lancet/runtime/devices.h"
#include "lancet/text/row_limit.h"
#include "latent_parts.h"

namespace lancet {

namespace {

/// Warns about content of the files that nothing reads.
void warn_of_files(const Checkpoint& checkpoint) {
  if (const std::string beside = disagreement(checkpoint); !beside.empty()) log_warning(beside);
  const std::vector<std::string> absent = absent_names(checkpoint);
  if (!absent.empty())
    log_warning(cat((checkpoint.folder() / kIndexFile).string(), ": names ", counted(absent.size(), "tensor"),
                    " that no shard has (", printable(absent.front()), absent.size() > 1 ? ", ...)" : ")",
                    ": the model is read without, which it needs nothing of"));
  if (has_compiled_names(checkpoint))
    log_warning(cat(checkpoint.folder().string(),
                    ": the tensors' names begin with _orig_mod., as torch.compile leaves them. lancet reads and writes "
                    "them so; transformers does not know them, and takes random weights instead. Save the model again "
                    "before it is edited: model._orig_mod.save_pretrained('OUT')"));
}

}  // namespace

ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  ModelConfig config = load_model_config(checkpoint, ignore_config_keys);
  resolve_weights(config, checkpoint);  // first refuses a checkpoint that does not fit
  warn_of_unread_keys(checkpoint.folder() / "config.json", unread_keys(checkpoint.config_text(), ignore_config_keys));
  warn_of_files(checkpoint);
  std::unique_ptr<Tokenizer> tokenizer =
      limit_to_rows(open_tokenizer(checkpoint.folder()), config.vocab_size, checkpoint.folder().string());
  return {std::move(checkpoint), std::move(config), std::move(tokenizer)};
}

DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys) {
  namespace fs = std::filesystem;
  if (const std::optional<fs::path> gguf = find_gguf(model)) {
    const std::string config = *gguf_side_text(GgufFile::open(*gguf), "config.json");
    return {*gguf, parse_model_config(config, "", ignore_config_keys, (*gguf / "config.json").string())};
  }
  std::error_code ignored;
  fs::path file = fs::is_regular_file(model, ignored) ? model : model / "config.json";
  // a folder of the cache, or an error that says what is missing
  if (!has_entry(file)) file = Checkpoint::open(model).folder() / "config.json";
  const std::string text = config_text_of(file);
  return {file.parent_path(),
          parse_model_config(with_quantize_config(text, file.parent_path()), "", ignore_config_keys, file.string())};
}

at::ScalarType weight_type(WeightKind kind, at::ScalarType run_type) {
  return kind == WeightKind::kRouterBias && c10::elementSize(run_type) < c10::elementSize(at::kFloat) ? at::kFloat
                                                                                                      : run_type;
}

at::Device weight_device(const Placement& placement, WeightId id) {
  switch (role_of(id.kind).place) {
    case WeightPlace::kEmbedding:
      return placement.embed_device();
    case WeightPlace::kHead:
      return placement.head_device();
    case WeightPlace::kLayer:
      break;
  }
  return placement.device_of(id.layer);
}

bool lies_here(const Placement& placement, WeightId id) {
  return role_of(id.kind).place == WeightPlace::kLayer ? placement.is_here(id.layer) : placement.has_ends();
}

namespace {

/// Whether all experts' parts are in one tensor, and are adjacent in the weight.
bool joins_columns(const WeightSpec& spec) { return has_all_experts(spec.stored.layout) && spec.parts_axis() == 1; }

/// Returns a view [experts, out, in] of a tensor with all experts.
Tensor by_expert(const Tensor& stored, const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns ? stored.transpose(1, 2) : stored;
}

/// Whether each expert's outputs are separate in the tensor, so that a view cannot have them without those of other
/// weights.
bool takes_turns(const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns && spec.shape.size() > 1;
}

/// Returns a view [experts, outputs of one, in] of a tensor in which weights take turns.
Tensor part_in_turn(const Tensor& stored, const WeightSpec& spec) {
  const int64_t groups = spec.stored.groups / spec.experts;
  return by_expert(stored, spec).unflatten(1, {groups, -1}).select(2, spec.stored.begin);
}

/// Returns a view [groups, outputs of each, ...].
Tensor part_by_group(const Tensor& stored, const WeightSpec& spec) {
  // a vector may be stored without a dimension, or with two
  const Tensor outputs = spec.shape.size() == 1                    ? stored.flatten()
                         : spec.stored.layout == Layout::kColumns  ? stored.t()
                         : spec.stored.layout == Layout::kByExpert ? stored.flatten(0, 1)
                                                                   : stored;
  const int64_t groups = spec.stored.groups;
  const int64_t size = spec.stored.tensors.size() > 1 ? outputs.size(0) : spec.shape.front();
  return outputs.unflatten(0, {groups, -1}).narrow(1, spec.stored.begin, size / groups);
}

/// Returns the bytes of one matrix from a tensor with several.
TensorView view_of_matrix(TensorView stored, const PackedSpec& spec) {
  const TensorSlice& slice = spec.slice;
  if (slice.is_whole()) return stored;
  const size_t bytes = stored.bytes.size() / static_cast<size_t>(slice.matrices);
  stored.bytes = stored.bytes.subspan(static_cast<size_t>(slice.matrix) * bytes, bytes);
  stored.shape.erase(stored.shape.begin());
  return stored;
}

}  // namespace

Tensor stored_part(const Tensor& stored, const WeightSpec& spec) {
  if (joins_columns(spec)) return by_expert(stored, spec).transpose(0, 1).flatten(1);
  if (takes_turns(spec)) return part_in_turn(stored, spec).flatten(0, 1);
  return part_by_group(stored, spec).flatten(0, 1);  // with one group it is still a view
}

void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight) {
  if (joins_columns(spec))
    by_expert(stored, spec).transpose(0, 1).copy_(weight.unflatten(1, {stored.size(0), -1}));
  else if (takes_turns(spec))
    part_in_turn(stored, spec).copy_(weight.unflatten(0, {spec.experts, -1}));
  else
    part_by_group(stored, spec).copy_(weight.unflatten(0, {spec.stored.groups, -1}));
}

std::vector<Tensor> stored_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.stored.tensors.size()), spec.parts_axis());
}

std::vector<Tensor> packed_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.packed.size()), spec.parts_axis());
}

std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec) {
  if (spec.stored.tensors.size() > 1 || !spec.packed.empty() || joins_columns(spec)) return std::nullopt;
  TensorView view = checkpoint.view(spec.stored.tensors.front());
  if (spec.is_whole() && (spec.stored.layout != Layout::kColumns || spec.shape.size() == 1)) {
    view.shape = spec.shape;  // a vector may be stored without a dimension, or with two
    return view;
  }
  const bool is_rows = spec.stored.layout == Layout::kRows || (spec.shape.size() == 1 && spec.stored.groups == 1);
  if (!is_rows) return std::nullopt;
  const auto row_bytes = view.bytes.size() / static_cast<size_t>(spec.stored.shape.front());
  view.bytes = view.bytes.subspan(static_cast<size_t>(spec.stored.begin) * row_bytes,
                                  static_cast<size_t>(spec.shape.front()) * row_bytes);
  view.shape = spec.shape;
  return view;
}

PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec, at::Device device) {
  std::vector<Tensor> parts(spec.parts.size());
  std::vector<TensorRead> reads;
  std::vector<size_t> read_parts;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    if (spec.parts[i].role == PartRole::kRecord) continue;
    const TensorView stored = view_of_matrix(checkpoint.view(spec.parts[i].tensor), spec);
    reads.push_back({stored, device, to_scalar_type(stored.dtype)});
    read_parts.push_back(i);
  }
  std::vector<Tensor> tensors = read_tensors(reads, [](int64_t) {});
  for (size_t i = 0; i < tensors.size(); ++i) parts[read_parts[i]] = slice_of_matrix(tensors[i], spec).contiguous();
  try {
    return PackedMatrix::assemble(spec, parts);
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(checkpoint.folder().string(), ": ", error.what()));
  }
}

Tensor read_unpacked(const Checkpoint& checkpoint, const WeightSpec& spec, at::Device device, at::ScalarType type) {
  std::vector<Tensor> matrices;
  for (const PackedSpec& matrix : spec.packed) matrices.push_back(read_packed(checkpoint, matrix, device).unpack(type));
  if (matrices.size() == 1 && spec.packed.front().slice.is_whole()) return stored_part(matrices.front(), spec);
  return torch::cat(matrices, spec.parts_axis());
}

Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked) {
  if (spec.stored.layout == Layout::kLatentParts) return read_latents(checkpoint, spec, unpacked);
  if (!spec.packed.empty()) return read_unpacked(checkpoint, spec, Placement::host(), unpacked);
  std::vector<Tensor> tensors;
  for (const std::string& name : spec.stored.tensors) tensors.push_back(to_tensor(checkpoint.view(name)));
  return tensors.size() == 1 ? stored_part(tensors.front(), spec) : torch::cat(tensors, spec.parts_axis());
}

namespace {

/// Rounds up, so that a model never has "0 MB".
int64_t megabytes(int64_t bytes) { return (bytes + 999'999) / 1'000'000; }

int64_t bytes_in_file(const Checkpoint& checkpoint, const WeightSpec& spec) {
  return spec.stored_bytes(spec.packed.empty() ? checkpoint.info(spec.stored.tensors.front()).dtype : DType::kF32);
}

/// Returns the name of the format in which a weight is kept quantised.
std::string format_of(const WeightSpec& spec, const ModelConfig& config, const QuantiseRule& rule) {
  return rule.quantises(spec) ? std::string(quantiser_name(*rule.quantiser)) : config.quantised->method();
}

std::string hash_of(const Checkpoint& checkpoint, const std::string& tensor) {
  ContentHash hash;
  checkpoint.view(tensor).add_to(hash);
  return hash.hex();
}

/// If the two tensors differ, transformers uses two tables, whatever config.json says about tying them.
void check_tied(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::vector<std::string> names = tied_tensors(config, checkpoint);
  if (names.size() < 2 || hash_of(checkpoint, names[0]) == hash_of(checkpoint, names[1])) return;
  throw CheckpointError(cat(checkpoint.folder().string(), ": ", names[1], ": expected the numbers of ", names[0],
                            ", as config.json ties the two (tie_word_embeddings), got others: set it to false where "
                            "both are meant, else take ",
                            names[1], " out of the files"));
}

/// Loads the weights of one device.
class DeviceLoader {
 public:
  DeviceLoader(const Checkpoint& checkpoint, const ModelConfig& config, at::ScalarType type, const QuantiseRule& rule,
               at::Device device)
      : checkpoint_(checkpoint), config_(config), type_(type), rule_(rule), device_(device) {}

  /// Adds `specs` to `weights`.
  void load(std::span<const WeightSpec* const> specs, const std::string& label, ModelWeights& weights) {
    std::vector<const WeightSpec*> direct, rearranged, kept_packed;
    int64_t total_bytes = 0;
    for (const WeightSpec* spec : specs) {
      total_bytes += bytes_in_file(checkpoint_, *spec);
      const bool is_quantised = rule_.keeps_packed(*spec) || rule_.quantises(*spec);
      (is_quantised ? kept_packed : stored_view(checkpoint_, *spec) ? direct : rearranged).push_back(spec);
    }
    places_ = neighbour_places(specs, rule_, type_, device_);
    Progress progress(label, megabytes(total_bytes), "MB");
    int64_t done = 0;
    const auto count = [&](const WeightSpec& spec) {
      done += bytes_in_file(checkpoint_, spec);
      progress.set(megabytes(done));
    };
    read_direct(direct, weights, [&](int64_t read_bytes) { progress.set(megabytes(read_bytes)); });
    for (const WeightSpec* spec : direct) count(*spec);
    for (const WeightSpec* spec : rearranged) {
      const Tensor place = place_of(*spec), weight = read_rearranged(*spec);
      weights.full.emplace(spec->id, place.defined() ? place.copy_(weight) : weight);
      count(*spec);
    }
    for (const WeightSpec* spec : kept_packed) {
      weights.quantised.emplace(spec->id, rule_.quantises(*spec) ? quantised(*spec) : packed(*spec));
      // the freed memory of a matrix in full precision is a gap into which the next aligned matrix does not fit
      if (device_ == Placement::host()) ::malloc_trim(0);
      weights.formats.insert(format_of(*spec, config_, rule_));
      count(*spec);
    }
    progress.set(megabytes(total_bytes));
  }

 private:
  at::ScalarType type_of(const WeightSpec& spec) const { return weight_type(spec.id.kind, type_); }

  /// Undefined: the tensor may be anywhere.
  Tensor place_of(const WeightSpec& spec) const {
    const auto at = places_.find(spec.id);
    return at == places_.end() ? Tensor() : at->second;
  }

  void read_direct(const std::vector<const WeightSpec*>& specs, ModelWeights& weights,
                   const std::function<void(int64_t)>& on_bytes) const {
    std::vector<TensorRead> reads;
    for (const WeightSpec* spec : specs)
      reads.push_back({*stored_view(checkpoint_, *spec), device_, type_of(*spec), place_of(*spec)});
    std::vector<Tensor> tensors = read_tensors(reads, on_bytes);
    for (size_t i = 0; i < specs.size(); ++i) weights.full.emplace(specs[i]->id, std::move(tensors[i]));
  }

  /// Reads bytes whose order in the file differs from the order in the weight.
  Tensor read_rearranged(const WeightSpec& spec) const {
    const Tensor stored = read_stored(checkpoint_, spec, type_of(spec));
    return upload(torch::empty(spec.shape, type_of(spec)).copy_(stored), device_);
  }

  Tensor read(const WeightSpec& spec) const {
    const std::optional<TensorView> stored = stored_view(checkpoint_, spec);
    if (!stored) return read_rearranged(spec);
    const std::vector<TensorRead> reads{{*stored, device_, type_}};
    return read_tensors(reads, [](int64_t) {}).front();
  }

  /// Reads experts one by one, so that at most one is in memory in full precision, unless the file has all in one
  /// tensor.
  QuantisedLinear quantised(const WeightSpec& spec) const {
    std::vector<QuantisedRows> parts;
    if (has_all_experts(spec.stored.layout) || spec.stored.layout == Layout::kLatentParts) {
      for (const Tensor& part : read_rearranged(spec).chunk(spec.experts, spec.parts_axis()))
        parts.push_back({quantise(part.contiguous(), *rule_.quantiser, spec.name), 1, 0, part.size(0)});
      return {std::move(parts), spec.parts_axis()};
    }
    for (const std::string& tensor : spec.stored.tensors) {
      WeightSpec part = spec;
      part.stored.tensors = {tensor};
      part.shape[static_cast<size_t>(spec.parts_axis())] /= static_cast<int64_t>(spec.stored.tensors.size());
      parts.push_back({quantise(read(part), *rule_.quantiser, tensor), 1, 0, part.shape.front()});
    }
    return {std::move(parts), spec.parts_axis()};
  }

  QuantisedLinear packed(const WeightSpec& spec) {
    std::vector<QuantisedRows> parts;
    const int64_t rows = spec.packed.size() > 1 ? spec.packed.front().rows : spec.shape.front();
    for (const PackedSpec& matrix : spec.packed) {
      if (matrix.slice.is_whole())
        parts.push_back({assembled(matrix), spec.stored.groups, spec.stored.begin, rows});
      else
        parts.push_back({read_packed(checkpoint_, matrix, device_), 1, 0, matrix.rows});
    }
    return {std::move(parts), spec.parts_axis()};
  }

  /// Weights of one layer may share a matrix.
  PackedMatrix assembled(const PackedSpec& spec) {
    if (last_ && last_->first == spec.name) return last_->second;
    last_.emplace(spec.name, read_packed(checkpoint_, spec, device_));
    return last_->second;
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  at::ScalarType type_;
  const QuantiseRule& rule_;
  at::Device device_;
  std::map<WeightId, Tensor> places_;  ///< memory of neighbours
  std::optional<std::pair<std::string, PackedMatrix>> last_;
};

}  // namespace

ModelWeights load_weights(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                          const QuantiseRule& rule) {
  const std::vector<WeightSpec> table = resolve_weights(config, checkpoint);
  if (placement.has_ends()) check_tied(checkpoint, config);
  if (rule.quantiser && std::ranges::none_of(table, [&](const WeightSpec& spec) { return rule.quantises(spec); }))
    throw ConfigError(cat("run.quantise_base: ", quantiser_name(*rule.quantiser),
                          ": expected matrices in full precision that "
                          "no edit changes, found none in ",
                          checkpoint.folder().string(),
                          config.quantised ? cat(", which has them quantised (", config.quantised->method(), ")") : "",
                          ": leave it out"));
  ModelWeights weights;
  std::vector<at::Device> devices;
  for (const Stage& stage : placement.stages())
    if (std::find(devices.begin(), devices.end(), stage.device) == devices.end()) devices.push_back(stage.device);
  for (const at::Device device : devices) {
    std::vector<const WeightSpec*> own;
    for (const WeightSpec& spec : table)
      if (lies_here(placement, spec.id) && weight_device(placement, spec.id) == device) own.push_back(&spec);
    const std::string where = placement.stages().size() == 1 ? "" : cat(" ", device.str());
    DeviceLoader(checkpoint, config, placement.weight_dtype(), rule, device).load(own, "loading" + where, weights);
  }
  for (const WeightSpec& spec : table) {
    if (lies_here(placement, spec.id) || !(rule.keeps_packed(spec) || rule.quantises(spec))) continue;
    weights.quantised_elsewhere.insert(spec.id);
    weights.formats.insert(format_of(spec, config, rule));
  }
  return weights;
}

}  // namespace lancet
