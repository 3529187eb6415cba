#include "lancet/gguf/gguf_model.h"

#include <algorithm>

#include "architectures.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNumberPlace = "{}";

/// Tensors that config.json says.
constexpr std::string_view kSaidByConfig[] = {"rope_freqs.weight"};

/// The number that stands in the pattern's place for one, where the rest is the name; nullopt: it is another name. A
/// pattern without such a place is a name of number 0.
std::optional<int64_t> number_in(std::string_view name, std::string_view pattern) {
  const size_t at = pattern.find(kNumberPlace);
  if (at == std::string_view::npos) return name == pattern ? std::optional<int64_t>(0) : std::nullopt;
  const std::string_view end = pattern.substr(at + kNumberPlace.size());
  if (name.size() <= pattern.size() - kNumberPlace.size() || !name.starts_with(pattern.substr(0, at)) ||
      !name.ends_with(end))
    return std::nullopt;
  const std::string_view digits = name.substr(at, name.size() - at - end.size());
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return parse_whole_number(digits);
}

/// Puts the numbers into the places for them, in turn.
std::string numbered(std::string_view pattern, int64_t first, int64_t second) {
  std::string name(pattern);
  for (const int64_t number : {first, second})
    if (const size_t at = name.find(kNumberPlace); at != std::string::npos)
      name.replace(at, kNumberPlace.size(), std::to_string(number));
  return name;
}

int64_t places_in(std::string_view pattern) {
  int64_t places = 0;
  for (size_t at = pattern.find(kNumberPlace); at != std::string_view::npos; at = pattern.find(kNumberPlace, at + 1))
    ++places;
  return places;
}

class WeightFinder {
 public:
  explicit WeightFinder(const GgufFile& file)
      : file_(file),
        architecture_(architecture_of(file)),
        heads_(file.whole(own_key(file, "attention.head_count")).value_or(0)),
        kv_heads_(file.whole(own_key(file, "attention.head_count_kv")).value_or(heads_)) {}

  void add(const GgufTensor& tensor, std::vector<GgufWeight>& weights) const {
    const size_t dot = tensor.name.rfind('.');
    const std::string_view name = std::string_view(tensor.name).substr(0, dot);
    const std::string_view end = dot == std::string::npos ? "" : std::string_view(tensor.name).substr(dot);
    if (end == ".weight" || end == ".bias")
      for (const auto& rows : architecture_.tensors)
        for (const GgufTensorRow& row : rows)
          if (const std::optional<int64_t> layer = number_in(name, row.file))
            return add_parts(tensor, row, *layer, end, weights);
    throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(tensor.name),
                              "': expected tensors that a model of the architecture ", architecture_.name,
                              " has, got this one, which lancet does not know: take the model's safetensors"));
  }

 private:
  void add_parts(const GgufTensor& tensor, const GgufTensorRow& row, int64_t layer, std::string_view end,
                 std::vector<GgufWeight>& weights) const {
    const bool is_of_experts = places_in(row.model) > 1;
    if (is_of_experts && tensor.shape.size() < 2)
      throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(tensor.name),
                                "': expected a part for each expert, got ", shape_text(tensor.shape)));
    const int64_t parts = is_of_experts ? tensor.shape.front() : 1;
    for (int64_t part = 0; part < parts; ++part) {
      GgufWeight weight{.name = cat(numbered(row.model, layer, part), end), .tensor = &tensor};
      if (is_of_experts) weight.expert = part;
      set_change(row, weight);
      weights.push_back(std::move(weight));
    }
  }

  void set_change(const GgufTensorRow& row, GgufWeight& weight) const {
    const bool is_query = row.file.ends_with(".attn_q"), is_key = row.file.ends_with(".attn_k");
    if (architecture_.has_turned_heads && (is_query || is_key)) {
      weight.change = is_query ? GgufChange::kHeadRows : GgufChange::kKvHeadRows;
      weight.heads = is_query ? heads_ : kv_heads_;
      const int64_t rows = weight.tensor->shape.front();
      if (weight.heads < 1 || rows % (2 * weight.heads) != 0)
        throw CheckpointError(cat(file_.path().string(), ": tensor '", printable(weight.tensor->name), "': expected ",
                                  weight.heads, " heads of an even number of rows, got ", rows, " rows"));
    }
    const bool is_norm = row.file.ends_with("_norm") && weight.name.ends_with(".weight");
    if (architecture_.has_norms_plus_one && is_norm) weight.change = GgufChange::kLessOne;
  }

  const GgufFile& file_;
  const GgufArchitecture& architecture_;
  int64_t heads_, kv_heads_;
};

}  // namespace

std::vector<int64_t> GgufWeight::shape() const {
  std::vector<int64_t> shape = tensor->shape;
  if (expert >= 0) shape.erase(shape.begin());
  // transformers has the gate of a shared expert as a matrix of one row, llama.cpp as a vector
  if (name.ends_with(".shared_expert_gate.weight") && shape.size() == 1) shape.insert(shape.begin(), 1);
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
