// A model folder in Hugging Face layout: config.json, one safetensors file or shards with an index, tokenizer files; or
// a GGUF file, which is seen as the folder that it stands for. Knows files and bytes, not what the tensors mean.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/gguf/gguf_model.h"

namespace lancet {

/// What a checkpoint is of, where it is a GGUF file. Weights are in the order of the file.
struct GgufSource {
  GgufFile file;
  std::vector<GgufWeight> weights;
};

class Checkpoint {
 public:
  /// `path`: a model folder, a Hugging Face cache folder of a snapshot (files may be symbolic links), or a cache's
  /// `models--org--name` folder (its refs/main, or its only snapshot, is taken); or a GGUF file (the first of a split
  /// one), whatever its name, or a folder that has one and no safetensors.
  /// Checks the index against the shards (both ways) and maps them; reads no tensor data. Every file that an export
  /// copies is opened here, and stays open: what has its name later does not matter.
  /// Throws: CheckpointError; for folders with only .bin or .pth weights it says how to convert them.
  static Checkpoint open(const std::filesystem::path& path);

  /// The folder that holds config.json (the resolved snapshot for cache folders), or the GGUF file.
  const std::filesystem::path& folder() const { return folder_; }
  /// Text of config.json, with the settings of a quantize_config.json where it has none, and with
  /// bare floats as objects (strict_json.h).
  const std::string& config_text() const { return config_text_; }
  /// Whether it says what the file says, no more.
  bool has_own_config() const { return has_own_config_; }
  /// Of a GGUF file: its tensors by their names in the model's class, those in blocks as rows of bytes, with the type
  /// at the end of their names ("model.layers.3.mlp.down_proj.weight.Q4_K"); and last the ones that the file has in
  /// another form than the class, in memory.
  const std::vector<TensorFile>& shards() const { return shards_; }
  /// nullptr: it is a folder.
  const GgufSource* gguf() const { return gguf_.get(); }
  /// config.json, the tokenizer's files and what else goes with the weights, and their index where they have one.
  const std::vector<std::shared_ptr<const MappedFile>>& side_files() const { return side_files_; }

  /// Returns the tensors' names, sorted.
  std::vector<std::string> tensor_names() const;
  bool contains(std::string_view name) const { return shard_of_.contains(name); }
  const TensorInfo& info(std::string_view name) const;
  TensorView view(std::string_view name) const;
  uint64_t tensor_bytes() const;

  /// XXH3-128 over every tensor's name, dtype, shape and bytes, in name order: independent of sharding and file names.
  /// Computed once; not from several threads. Throws: CheckpointError when a shard was written to since it was opened.
  std::string content_hash() const;

  /// Throws: CheckpointError when an opened file is not what it was when it was opened. Shards whose times differ count
  /// as unchanged when the content still has the hash that content_hash() gave; without one, when they were not
  /// written to.
  void check_unchanged() const;

 private:
  static Checkpoint open_gguf(const std::filesystem::path& path);
  std::string hash_content() const;

  std::filesystem::path folder_;
  std::string config_text_;
  bool has_own_config_ = true;
  std::vector<TensorFile> shards_;
  std::shared_ptr<const GgufSource> gguf_;
  std::map<std::string, size_t, std::less<>> shard_of_;
  std::vector<std::shared_ptr<const MappedFile>> side_files_;
  mutable std::string content_hash_;  // empty: not asked for yet
};

// Settings of quantisation that a model folder keeps apart: quantize_config.json, of AutoGPTQ's time.

inline constexpr const char* kQuantizeConfigFile = "quantize_config.json";

/// The text of config.json as programs of today read it. Where it says nothing of quantisation and quantize_config.json
/// lies in the same folder, that stands in it as its quantization_config, of the method gptq where it names none; the
/// text is then laid out as transformers writes it. Otherwise, and where it is no JSON object, it is as it was.
/// Throws: CheckpointError when quantize_config.json is needed and is no JSON object.
std::string with_quantize_config(std::string config_json, const std::filesystem::path& folder);

}  // namespace lancet
