// Architectures as llama.cpp names them: of each the class in transformers, where its tensors go, and what its metadata
// says. An architecture is a row of kGgufArchitectures.
// Sources: llama.cpp, gguf-py/gguf/constants.py and tensor_mapping.py (names), convert_hf_to_gguf.py (what is changed).
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/gguf/gguf_model.h"

namespace lancet {

using OrderedJson = nlohmann::ordered_json;

/// Without the end, ".weight" or ".bias". "{}" stands for the layer's number; in the class's name a second one for an
/// expert's, whose matrix is a part of the file's tensor then.
struct GgufTensorRow {
  std::string_view file;
  std::string_view model;
  GgufChange change = GgufChange::kNone;  ///< kTransposed: of ".weight" alone
};

enum class GgufKeyKind { kWhole, kNumber, kFlag };

/// Metadata "ARCHITECTURE.file" that is a key of config.json.
struct GgufKeyRow {
  std::string_view file;
  std::string_view config;
  GgufKeyKind kind = GgufKeyKind::kWhole;
};

struct GgufArchitecture {
  std::string_view name;  ///< general.architecture
  std::string_view model_class;
  std::string_view model_type;
  std::string_view other_type = {};  ///< a second model type whose folders are written in the same way
  std::array<std::span<const GgufTensorRow>, 4> tensors = {};  ///< the first row that has the name counts
  std::span<const GgufTensorRow> whole_names = {};             ///< rows whose names have their ends, which differ
  std::array<std::span<const GgufKeyRow>, 3> keys = {};
  std::string_view norm_key = "rms_norm_eps";
  /// Adds what is no key alone. nullptr: nothing.
  void (*complete)(const GgufFile& file, OrderedJson& config) = nullptr;
  bool has_turned_heads = false;  ///< rows of Q and K lie as llama.cpp turns them
  bool has_norms_plus_one = false;
  bool has_rope_sections = false;  ///< positions of images have parts of the rotary embedding, which metadata lists
  bool is_only_read = false;       ///< folders of such models are not written as GGUF files
};

/// The file's. Throws: CheckpointError where lancet does not read it.
const GgufArchitecture& architecture_of(const GgufFile& file);

/// Returns the architecture that models of the type are written as; nullptr: there is none.
const GgufArchitecture* find_architecture(std::string_view model_type);

/// Returns what is done to the numbers of a row's tensor. `end`: ".weight" or ".bias".
GgufChange change_of(const GgufArchitecture& architecture, const GgufTensorRow& row, std::string_view end);

/// Returns what Llama 3's scaled frequencies are divided by, as llama.cpp's converter computes the tensor rope_freqs.
std::vector<double> llama3_factors(size_t count, double theta, double factor, double original);

/// Returns how many of the file's layers predict further tokens, and are no part of the model. They come last.
int64_t layers_beyond(const GgufFile& file);

/// Metadata's name with the architecture's before it: "llama.block_count".
std::string own_key(const GgufFile& file, std::string_view key);

/// Returns the numbers of a head of attention: config.json's `head_dim`, or a head's share of the hidden size.
int64_t head_size(const OrderedJson& config);

/// Returns how many of a head's numbers config.json's rotary embedding turns.
double turned_size(const OrderedJson& config);

/// Checks numbers of metadata that change what a model computes and that nothing else reads. `config`: complete.
/// Throws: CheckpointError for one that says something.
void refuse_unread_numbers(const GgufFile& file, const GgufArchitecture& architecture, const OrderedJson& config);

/// config.json.
std::string config_text_of(const GgufFile& file);
std::string tokenizer_text_of(const GgufFile& file);
std::string tokenizer_config_text_of(const GgufFile& file);

}  // namespace lancet
