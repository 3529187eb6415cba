// The table of model families. A family is a row that says what its config.json may contain and means, what its weights
// are called, and how they are stored. Each family has a file in models/families/. Rows are constants, so using one
// family runs no code of the others.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "lancet/models/weight_kind.h"

namespace lancet {

class ConfigReader;
struct ModelConfig;

/// How a stored tensor holds its weights, of which there may be one or several.
enum class Layout : uint8_t {
  kRows,         ///< [out, in]; several weights: one after the other
  kColumns,      ///< [in, out]; several weights: side by side (GPT-2's Conv1D)
  kByHead,       ///< [out, in]; several: interleaved by key head, with the query heads that share it (GPT-NeoX, Falcon)
  kByQueryHead,  ///< [out, in]; several: interleaved by query head (Qwen3-Next's queries and their gates)
  kByMixerHead,  ///< [out, in]; several: interleaved by key head of a recurrent mixer (Qwen3-Next)
  kOneRow,       ///< a vector that is stored as [1, out]
  kByExpert,     ///< [experts, out, in]; several: one after the other within each expert (Granite's)
  kByExpertColumns,  ///< [experts, in, out]; several: interleaved number by number (gpt-oss)
  kLatentParts  ///< two tensors: keys of each head [rank, plain part], values of each head [value, rank] (GGUF files)
};

/// Whether one tensor holds the weights of all experts of a layer.
inline bool has_all_experts(Layout layout) { return layout == Layout::kByExpert || layout == Layout::kByExpertColumns; }

/// A weight of the family. Rows with the same name are parts of one stored tensor, in their order.
struct WeightRow {
  WeightKind kind;
  std::string_view name;  ///< name in transformers; "{}" stands for the layer, a second "{}" for the expert
  Layout layout = Layout::kRows;
  /// Whether a layer of this configuration has this weight; null: the weight's kind decides.
  bool (*is_had)(const ModelConfig& config, int64_t layer) = nullptr;
};

/// A checkpoint may write names that begin with `from` with `to` in its place.
struct NamePrefix {
  std::string_view from;
  std::string_view to;
};

/// A list that is built at compile time. More than kMost values do not compile.
template <typename Value, size_t kMost>
class ConstantList {
 public:
  constexpr ConstantList() = default;
  constexpr ConstantList(std::initializer_list<Value> values) { add(values); }
  constexpr void add(std::span<const Value> values) {
    for (const Value& value : values) values_[size_++] = value;
  }
  constexpr const Value* begin() const { return values_.data(); }
  constexpr const Value* end() const { return values_.data() + size_; }
  constexpr const Value& front() const { return values_.front(); }

 private:
  std::array<Value, kMost> values_{};
  size_t size_ = 0;
};

using NameList = ConstantList<std::string_view, 8>;
using KeyList = ConstantList<std::string_view, 40>;
using RowList = ConstantList<WeightRow, 48>;
using PrefixList = ConstantList<NamePrefix, 2>;

struct Family {
  std::string_view name;    ///< human-readable name: "Llama"
  NameList architectures;   ///< config.json architectures[0]
  NameList model_types;     ///< config.json model_type, for files without architectures
  KeyList understood_keys;  ///< keys of config.json that this family uses, in addition to those that all families use
  KeyList harmless_keys = {};          ///< keys of config.json without effect on the forward pass
  std::string_view nested_under = {};  ///< key under which multi-modal models nest these fields
  RowList weights;                     ///< rows in model order; a model lacks the rows that its fields rule out
  ConstantList<PrefixList, 2> other_names = {};  ///< alternative sets of names that some checkpoints use
  NameList ignored_tensors = {};  ///< tensors to ignore; "{}" stands for the layer, a final "*" for anything
  /// The name in transformers of the parameter that holds a layer's down projections, for files that store each expert
  /// in a tensor of its own while PEFT does not map these names to it. "{}" stands for the layer.
  std::string_view experts_parameter = {};
  /// Programs read this family's experts in one tensor alone: rows for experts apart are those of GGUF files.
  bool joins_experts = false;
  bool refuses_mixer_lora = false;  ///< PEFT refuses adapters of the output projections of its recurrent mixers
  /// Fills in the fields that follow from the keys. Reports problems to the reader.
  void (*read)(ConfigReader& keys, ModelConfig& config) = nullptr;
};

std::span<const Family* const> families();

/// Return keys of config.json: those that every family understands; those that change no family's computation; and
/// those that change the computation in a way that only families that list them support. The latter are refused unless
/// they are null or false.
std::span<const std::string_view> common_understood_keys();
std::span<const std::string_view> common_harmless_keys();
std::span<const std::string_view> refused_keys();

}  // namespace lancet
