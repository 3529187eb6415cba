// A GGUF file as the model folder that it stands for: the text of each file that describes the model, and the names
// that its tensors have in the model's own class.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/gguf/gguf_file.h"

namespace lancet {

/// What is done to a tensor's numbers on the way from the file to the model's class, and undone on the way back.
enum class GgufChange {
  kNone,
  kLessOne,     ///< norms that the file has as 1 + w
  kHeadRows,    ///< rows of each head: the file has the two halves of a head in turn, row by row
  kKvHeadRows,  ///< likewise, of heads of keys
  kByKeyHead,  ///< rows of queries, keys and values, which the file has one after the other: the model's class has each
               ///< key head's together, its queries first
  kLogDecay,   ///< the file has -exp(w)
  kTransposed,  ///< plain numbers [out, in], which the model's class has as [in, out]
};

/// Numbers of heads of attention.
struct GgufHeads {
  int64_t queries = 0;
  int64_t keys = 0;
  bool operator==(const GgufHeads&) const = default;
};

/// A matrix, vector or number of the model, and its place in the file.
struct GgufWeight {
  std::string name;                    ///< "model.layers.3.mlp.down_proj.weight"
  const GgufTensor* tensor = nullptr;  ///< outlived by the GgufFile
  GgufChange change = GgufChange::kNone;
  GgufHeads heads = {};  ///< of changes of the rows' order
  int64_t expert = -1;   ///< place in the tensor's first dimension; -1: the whole tensor

  /// Its own, without an expert's number.
  std::vector<int64_t> shape() const;
  uint64_t bytes() const;
  uint64_t begin() const;
};

/// The weights in the order of the file. Throws: CheckpointError for an architecture that lancet does not read, and for
/// tensors that it does not have.
std::vector<GgufWeight> gguf_weights(const GgufFile& file);

/// Text of a file of the model folder that the GGUF file stands for: config.json, tokenizer.json,
/// tokenizer_config.json, chat_template.jinja. nullopt: the folder would have no such file. Throws: CheckpointError.
std::optional<std::string> gguf_side_text(const GgufFile& file, std::string_view name);

/// Names of all that it has.
std::vector<std::string> gguf_side_names(const GgufFile& file);

/// The GGUF file that a path means: the file itself, or the only one in a folder, of a split model the first. nullopt:
/// the path means none. Throws: CheckpointError where a folder has several models and no config.json.
std::optional<std::filesystem::path> find_gguf(const std::filesystem::path& path);

}  // namespace lancet
