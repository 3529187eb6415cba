#include "weight_loader.h"

#include <malloc.h>
#include <torch/types.h>
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/model_files.h"
#include "lancet/models/model_weights.h"
#include "lancet/models/neighbour_places.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/devices.h"

namespace lancet {

ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  ModelConfig config = load_model_config(checkpoint, ignore_config_keys);
  resolve_weights(config, checkpoint);  // a checkpoint that does not fit is refused before anything else is done
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint.folder());
  if (tokenizer->vocab_size() > config.vocab_size)
    throw TokenizerError(cat(checkpoint.folder().string(), ": the tokenizer has ", tokenizer->vocab_size(),
                             " ids, config.json's vocab_size is ", config.vocab_size,
                             ": the files belong to different models"));
  return {std::move(checkpoint), std::move(config), std::move(tokenizer)};
}

DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys) {
  namespace fs = std::filesystem;
  fs::path file = fs::is_regular_file(model) ? model : model / "config.json";
  if (!fs::exists(file)) file = Checkpoint::open(model).folder() / "config.json";  // a cache folder, or what is missing
  const std::string config = bare_floats_as_objects(read_text_file(file, "config.json"));
  return {file.parent_path(),
          parse_model_config(with_quantize_config(config, file.parent_path()), "", ignore_config_keys, file.string())};
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

Tensor to_tensor(const TensorView& view) {
  const auto options = torch::TensorOptions(to_scalar_type(view.dtype));
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  if (address % static_cast<uintptr_t>(bytes_per_element(view.dtype)) == 0) {
    // torch takes a mutable pointer; the mapping is read-only and the tensor is only read.
    void* bytes = const_cast<std::byte*>(view.bytes.data());
    return torch::from_blob(
        bytes, view.shape, [owner = view.owner](void*) {}, options);
  }
  Tensor copy = torch::empty(view.shape, options);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(copy.mutable_data_ptr()));
  return copy;
}

NamedTensors load_tensors(const SealedFile& file) {
  NamedTensors tensors;
  for (const TensorInfo& info : file.tensors())
    tensors.emplace_back(info.name, torch::empty(info.shape, torch::TensorOptions(to_scalar_type(info.dtype))));
  file.read([&](const SealedFile::Piece& piece) {
    auto* to = static_cast<std::byte*>(tensors[piece.tensor].second.mutable_data_ptr()) + piece.offset;
    std::ranges::copy(piece.bytes, to);
  });
  return tensors;
}

namespace {

/// Calls `use` with the tensors' bytes.
template <typename Use>
std::string with_sources(const NamedTensors& tensors, const Use& use) {
  std::vector<Tensor> host;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    host.push_back(tensor.to(Placement::host()).contiguous());
    sources.push_back(to_source(name, host.back()));
  }
  return use(sources);
}

}  // namespace

std::string write_tensors(const std::filesystem::path& path, const SealedFormat& format, const NamedTensors& tensors,
                          const Metadata& facts) {
  return with_sources(tensors, [&](const auto& sources) { return write_sealed(path, format, sources, facts); });
}

std::string hash_of_tensors(const SealedFormat& format, const NamedTensors& tensors, const Metadata& facts) {
  return with_sources(tensors, [&](const auto& sources) { return sealed_hash(format, sources, facts); });
}

TensorSource to_source(std::string name, const Tensor& tensor) {
  if (tensor.device() != Placement::host() || !tensor.is_contiguous())
    throw std::logic_error(name + ": only a contiguous tensor on the host can be written");
  return {std::move(name),
          to_dtype(tensor.scalar_type()),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

namespace {

/// Rounded up: a model that is there is never "0 MB".
int64_t megabytes(int64_t bytes) { return (bytes + 999'999) / 1'000'000; }

int64_t bytes_in_file(const Checkpoint& checkpoint, const WeightSpec& spec) {
  return spec.stored_bytes(spec.packed.empty() ? checkpoint.info(spec.stored.tensors.front()).dtype : DType::kF32);
}

/// Name of the format that a weight is kept quantised in.
std::string format_of(const WeightSpec& spec, const ModelConfig& config, const QuantiseRule& rule) {
  return rule.quantises(spec) ? std::string(quantiser_name(*rule.quantiser)) : config.quantised->method();
}

std::string hash_of(const Checkpoint& checkpoint, const std::string& tensor) {
  ContentHash hash;
  checkpoint.view(tensor).add_to(hash);
  return hash.hex();
}

/// transformers takes two tensors that differ for two tables, whatever config.json says of tying them.
void check_tied(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::vector<std::string> names = tied_tensors(config, checkpoint);
  if (names.size() < 2 || hash_of(checkpoint, names[0]) == hash_of(checkpoint, names[1])) return;
  throw CheckpointError(cat(checkpoint.folder().string(), ": ", names[1], ": expected the numbers of ", names[0],
                            ", as config.json ties the two (tie_word_embeddings), got others: set it to false where "
                            "both are meant, else take ",
                            names[1], " out of the files"));
}

/// What lies on one device.
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
      // what was held in full precision leaves a hole in the heap that the next matrix, aligned, does not fit into
      if (device_ == Placement::host()) ::malloc_trim(0);
      weights.formats.insert(format_of(*spec, config_, rule_));
      count(*spec);
    }
    progress.set(megabytes(total_bytes));
  }

 private:
  at::ScalarType type_of(const WeightSpec& spec) const { return weight_type(spec.id.kind, type_); }

  /// Undefined: anywhere.
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

  /// Reads bytes that do not lie in the file as in the weight.
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

  /// Experts one by one: no more than one is there in full precision, unless the file has all in one tensor.
  QuantisedLinear quantised(const WeightSpec& spec) const {
    std::vector<QuantisedRows> parts;
    if (has_all_experts(spec.stored.layout)) {
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
  std::map<WeightId, Tensor> places_;  ///< places of neighbours
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
