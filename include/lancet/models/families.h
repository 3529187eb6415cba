// The table of model families. A family is a row: what its config.json may hold and means, what its weights are called
// and how they are stored. One file each in models/families/. Rows are constants: whoever asks for one family runs
// nothing of the others.
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

/// How weights lie in a stored tensor, one weight or several.
enum class Layout : uint8_t {
  kRows,     ///< [out, in]; several: one after the other
  kColumns,  ///< [in, out]; several: beside each other (GPT-2's Conv1D)
  kByHead,   ///< [out, in]; several: in turn for each key head, with the query heads that share it (GPT-NeoX, Falcon)
  kByQueryHead,     ///< [out, in]; several: in turn for each query head (Qwen3-Next's queries and their gates)
  kByMixerHead,     ///< [out, in]; several: in turn for each key head of a recurrent mixer (Qwen3-Next)
  kOneRow,          ///< a vector, stored [1, out]
  kByExpert,        ///< [experts, out, in]; several: in turn within each expert (Granite's)
  kByExpertColumns  ///< [experts, in, out]; several: number by number in turn (gpt-oss)
};

/// Whether one tensor has the weights of all experts of a layer.
inline bool has_all_experts(Layout layout) { return layout == Layout::kByExpert || layout == Layout::kByExpertColumns; }

/// Rows of one name are parts of one stored tensor, in their order.
struct WeightRow {
  WeightKind kind;
  std::string_view name;  ///< transformers' name; "{}" stands for the layer, a second one for the expert
  Layout layout = Layout::kRows;
  /// Whether a layer of this configuration has this row; null: as its kind says.
  bool (*is_had)(const ModelConfig& config, int64_t layer) = nullptr;
};

/// Names that begin with `from` may begin with `to`.
struct NamePrefix {
  std::string_view from;
  std::string_view to;
};

/// A list that is made while compiling; more than kMost values do not compile.
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
  std::string_view name;                         ///< name for people: "Llama"
  NameList architectures;                        ///< config.json architectures[0]
  NameList model_types;                          ///< config.json model_type, where there are no architectures
  KeyList understood_keys;                       ///< keys of config.json, besides those of all families
  KeyList harmless_keys = {};                    ///< likewise; no effect on the forward pass
  std::string_view nested_under = {};            ///< the key that multi-modal models have the fields under
  RowList weights;                               ///< rows in model order; a model lacks those that its fields rule out
  ConstantList<PrefixList, 2> other_names = {};  ///< whole sets of names that checkpoints also have
  NameList ignored_tensors = {};                 ///< "{}" stands for the layer, a last "*" for anything
  /// transformers' parameter of a layer's down projections, where the files have each expert's in a tensor of its own
  /// and PEFT does not know the one for the other; "{}" stands for the layer.
  std::string_view experts_parameter = {};
  bool refuses_mixer_lora = false;  ///< whether PEFT refuses adapters of its recurrent mixers' output projections
  /// Fills in what follows from the keys. Problems go to the reader.
  void (*read)(ConfigReader& keys, ModelConfig& config) = nullptr;
};

std::span<const Family* const> families();

/// Keys that every family understands, that none's computation hangs on, and that change the computation in a way that
/// no family supports that does not understand them: those are refused unless null or false.
std::span<const std::string_view> common_understood_keys();
std::span<const std::string_view> common_harmless_keys();
std::span<const std::string_view> refused_keys();

}  // namespace lancet
