#include "lancet/gguf/gguf_model.h"

#include <algorithm>
#include <limits>

#include "architectures.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/row_order.h"
#include "lancet/io/file_handle.h"
#include "number_places.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Tensors that config.json says.
constexpr int64_t kMostExperts = 4096;

constexpr std::string_view kSaidByConfig[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                              "rope_factors_short.weight"};

class WeightFinder {
 public:
  explicit WeightFinder(const GgufFile& file) : file_(file), architecture_(architecture_of(file)) {
    if (const int64_t beyond = layers_beyond(file); beyond > 0)
      first_beyond_ = file.whole(own_key(file, "block_count")).value_or(0) - beyond;
  }

  void add(const GgufTensor& tensor, std::vector<GgufWeight>& weights) const {
    if (is_beyond(tensor.name)) return;
    const size_t dot = tensor.name.rfind('.');
    const std::string_view name = std::string_view(tensor.name).substr(0, dot);
    const std::string_view end = dot == std::string::npos ? "" : std::string_view(tensor.name).substr(dot);
    for (const GgufTensorRow& row : architecture_.whole_names)
      if (const auto numbers = numbers_in(tensor.name, row.file))
        return add_parts(tensor, row, numbers->front(), "", weights);
    if (end == ".weight" || end == ".bias")
      for (const auto& rows : architecture_.tensors)
        for (const GgufTensorRow& row : rows)
          if (const auto numbers = numbers_in(name, row.file))
            return add_parts(tensor, row, numbers->front(), end, weights);
    throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(tensor.name),
                              "': expected tensors that a model of the architecture ", architecture_.name,
                              " has, got this one, which lancet does not know: take the model's safetensors"));
  }

 private:
  /// Whether the tensor is of a layer that predicts further tokens.
  bool is_beyond(std::string_view name) const {
    constexpr std::string_view kLayer = "blk.";
    if (!name.starts_with(kLayer)) return false;
    name.remove_prefix(kLayer.size());
    const std::optional<int64_t> layer = parse_whole_number(name.substr(0, name.find('.')));
    return layer && *layer >= first_beyond_;
  }

  void add_parts(const GgufTensor& tensor, const GgufTensorRow& row, int64_t layer, std::string_view end,
                 std::vector<GgufWeight>& weights) const {
    const bool is_of_experts = places_in(row.model) > 1;
    if (is_of_experts && tensor.shape.size() < 2)
      throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(tensor.name),
                                "': expected a part for each expert, got ", shape_text(tensor.shape)));
    const int64_t parts = is_of_experts ? tensor.shape.front() : 1;
    if (const std::string key = own_key(file_, "expert_count"); is_of_experts && parts != file_.whole(key))
      file_.refuse(key, cat("the number of experts that the tensor '", printable(tensor.name), "' has, ", parts),
                   "another number, or none");
    if (parts > kMostExperts)
      throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(tensor.name), "': expected at most ",
                                kMostExperts, " experts, got ", parts));
    for (int64_t part = 0; part < parts; ++part) {
      GgufWeight weight{.name = cat(numbered(row.model, {layer, part}), end), .tensor = &tensor};
      if (is_of_experts) weight.expert = part;
      set_change(row, end, weight);
      weights.push_back(std::move(weight));
    }
  }

  void set_change(const GgufTensorRow& row, std::string_view end, GgufWeight& weight) const {
    weight.change = change_of(architecture_, row, end);
    // blocks are rows of outputs in every file; a matrix of them is read as [out, in]
    const bool is_plain_matrix = weight.tensor->type->is_plain() && weight.tensor->shape.size() == 2;
    if (weight.change == GgufChange::kTransposed && !is_plain_matrix) weight.change = GgufChange::kNone;
    if (!moves_rows(weight.change)) return;
    const int64_t queries = file_.whole(own_key(file_, "attention.head_count")).value_or(0);
    weight.heads = {queries, file_.whole(own_key(file_, "attention.head_count_kv")).value_or(queries)};
    const int64_t rows = weight.tensor->shape.front();
    if (!fits_rows(weight.change, rows, weight.heads))
      throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(weight.tensor->name),
                                "': expected rows of ", weight.heads.queries, " heads of queries and ",
                                weight.heads.keys, " of keys, got ", rows, " rows: the file is damaged"));
  }

  const GgufFile& file_;
  const GgufArchitecture& architecture_;
  int64_t first_beyond_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

std::vector<int64_t> GgufWeight::shape() const {
  std::vector<int64_t> shape = tensor->shape;
  if (expert >= 0) shape.erase(shape.begin());
  if (change == GgufChange::kTransposed) std::ranges::reverse(shape);
  // transformers has the gate of a shared expert as a matrix of one row, llama.cpp as a vector
  if (name.ends_with(".shared_expert_gate.weight") && shape.size() == 1) shape.insert(shape.begin(), 1);
  // llama.cpp has latent attention's two matrices of each head as a tensor of three dimensions
  if ((name.ends_with(".k_b_proj.weight") || name.ends_with(".v_b_proj.weight")) && shape.size() == 3)
    shape = {shape[0] * shape[1], shape[2]};
  // transformers has the taps of a short convolution with a dimension of one channel for each group
  const bool is_convolution = name.ends_with(".conv.conv.weight") || name.ends_with(".conv1d.weight");
  if (is_convolution && shape.size() == 2) shape.insert(shape.begin() + 1, 1);
  return shape;
}

uint64_t GgufWeight::bytes() const {
  return expert < 0 ? tensor->bytes : tensor->bytes / static_cast<uint64_t>(tensor->shape.front());
}

uint64_t GgufWeight::begin() const {
  return expert < 0 ? tensor->begin : tensor->begin + static_cast<uint64_t>(expert) * bytes();
}

std::vector<GgufWeight> gguf_weights(const GgufFile& file) {
  std::vector<GgufWeight> weights;
  const WeightFinder finder(file);
  for (const GgufTensor& tensor : file.tensors())
    if (std::ranges::find(kSaidByConfig, tensor.name) == std::end(kSaidByConfig)) finder.add(tensor, weights);
  return weights;
}

std::optional<std::string> gguf_side_text(const GgufFile& file, std::string_view name) {
  if (name == "config.json") return config_text_of(file);
  if (name == "chat_template.jinja") return file.text("tokenizer.chat_template");
  if (!file.has("tokenizer.ggml.model")) return std::nullopt;
  if (name == "tokenizer.json") return tokenizer_text_of(file);
  if (name == "tokenizer_config.json") return tokenizer_config_text_of(file);
  return std::nullopt;
}

std::vector<std::string> gguf_side_names(const GgufFile& file) {
  std::vector<std::string> names{"config.json"};
  if (file.has("tokenizer.ggml.model")) names.insert(names.end(), {"tokenizer.json", "tokenizer_config.json"});
  if (file.has("tokenizer.chat_template")) names.emplace_back("chat_template.jinja");
  return names;
}

std::optional<fs::path> find_gguf(const fs::path& path) {
  if (is_gguf_file(path)) return path;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return std::nullopt;
  for (const char* own : {"model.safetensors", "model.safetensors.index.json", "adapter_config.json"})
    if (has_entry(path / own)) return std::nullopt;
  std::vector<std::string> models;
  for (const std::string& name : folder_names(path)) {
    const bool is_later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (name.ends_with(".gguf") && !name.starts_with("mmproj") && !is_later_part) models.push_back(name);
  }
  if (models.empty()) return std::nullopt;
  if (models.size() > 1)
    throw CheckpointError(
        cat(path.string(), ": expected one model, got the files ", join(models), ": name one of them"));
  return path / models.front();
}

}  // namespace lancet
