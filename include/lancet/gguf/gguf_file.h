// A GGUF file, as llama.cpp, Ollama and LM Studio run it: metadata by name, then the tensors' names, types and places,
// then their bytes. Versions 2 and 3, little endian. What stands in the head is checked when the file is opened; long
// values are read when somebody asks for them.
// Source of the format: ggml-org/ggml, docs/gguf.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/gguf/gguf_types.h"
#include "lancet/io/files.h"

namespace lancet {

/// Whether the file begins as a GGUF file does. False for what cannot be read.
bool is_gguf_file(const std::filesystem::path& path);

/// Types of metadata, with the numbers that files have for them.
enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kText = 8,
  kList = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12
};

/// Place of a value in the file, without its name and type.
struct GgufPlace {
  GgufValueType type = GgufValueType::kU32;  ///< of a list: of its elements
  bool is_list = false;
  uint64_t count = 1;  ///< of a list
  uint64_t begin = 0;  ///< offset of the value in the file; of a list: of its first element
};

using GgufMetadata = std::map<std::string, GgufPlace, std::less<>>;

struct GgufTensor {
  std::string name;                ///< "blk.3.ffn_down.weight"
  const GgufType* type = nullptr;  ///< never null
  std::vector<int64_t> shape;      ///< numbers of the last dimension lie beside each other
  size_t file = 0;                 ///< place in GgufFile::files()
  uint64_t begin = 0;              ///< offset of its first byte in that file
  uint64_t bytes = 0;
};

class GgufFile {
 public:
  /// `path`: the file, or the first of a model that is split ("X-00001-of-00003.gguf": the others lie beside it).
  /// Throws: CheckpointError for another version or byte order, counts, names, types and offsets that cannot be, names
  /// that come twice, tensors that overlap or lie outside, and files of a split model that are missing or of another.
  static GgufFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return files_.front()->path(); }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }
  /// Tensors in the order of the head.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// nullptr: there is none.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// Bytes before the first tensor's in a file: metadata and places of tensors, and the filling after them.
  uint64_t data_begin(size_t file) const { return data_begins_[file]; }
  uint64_t alignment() const { return alignment_; }
  uint32_t version() const { return version_; }

  // Metadata, of a split model that of the first file. What has another type than is asked for is a CheckpointError.

  const GgufMetadata& metadata() const { return metadata_; }
  bool has(std::string_view key) const { return metadata_.contains(key); }
  std::optional<std::string> text(std::string_view key) const;
  /// Any number, or a list of one number.
  std::optional<double> number(std::string_view key) const;
  std::optional<int64_t> whole(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  /// Elements of a list; a single number is a list of one. Empty: there is none.
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// Throws: CheckpointError "PATH: metadata 'KEY': expected ..., got ...".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, std::string_view got) const;

 private:
  void add_file(const std::filesystem::path& path);
  const GgufPlace* find(std::string_view key) const;

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<uint64_t> data_begins_;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  uint64_t alignment_ = 32;
  uint32_t version_ = 3;
};

}  // namespace lancet
