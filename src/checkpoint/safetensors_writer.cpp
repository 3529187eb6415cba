#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "safetensors_format.h"
#include "safetensors_head.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

/// The data section begins at a multiple of this in the file, as the reference writer makes it.
constexpr uint64_t kAlignment = 8;

void check_sources(const std::filesystem::path& path, std::span<const TensorSource> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorSource& tensor : tensors) {
    const std::string where = cat(path.string(), ": tensor '", printable(tensor.name), "': ");
    if (tensor.name == kMetadataKey)
      throw CheckpointError(where + "expected another name, this one is reserved by the format; rename the tensor");
    if (!names.insert(tensor.name).second)
      throw CheckpointError(where + "expected each name once, got it twice; rename one of the tensors");
    const auto expected = stored_bytes(tensor.dtype, tensor.shape);
    if (!expected || *expected != tensor.bytes.size())
      throw CheckpointError(cat(where, "expected ", expected ? std::to_string(*expected) : "fewer than 2^63",
                                " bytes for ", dtype_name(tensor.dtype), " ", shape_text(tensor.shape), ", got ",
                                tensor.bytes.size(), " bytes; make the shape agree with the data"));
  }
}

/// A JSON string. Throws: nlohmann::json::exception when `text` is not UTF-8.
std::string quoted(std::string_view text) { return nlohmann::json(text).dump(); }

/// Written by hand, because the order of the tensors is the order of their bytes.
std::string header_text(std::span<const TensorSource> tensors, const Metadata& metadata) {
  std::string header = "{";
  const auto add = [&](std::string_view key, const std::string& value) {
    header += cat(header.size() > 1 ? "," : "", quoted(key), ":", value);
  };
  if (!metadata.empty()) add(kMetadataKey, nlohmann::json(metadata).dump());
  uint64_t offset = 0;
  for (const TensorSource& tensor : tensors) {
    const uint64_t end = offset + tensor.bytes.size();
    add(tensor.name, cat(R"({"dtype":")", dtype_name(tensor.dtype), R"(","shape":)",
                         nlohmann::json(tensor.shape).dump(), R"(,"data_offsets":[)", offset, ",", end, "]}"));
    offset = end;
  }
  header += "}";
  header.resize((kLengthBytes + header.size() + kAlignment - 1) / kAlignment * kAlignment - kLengthBytes, ' ');
  return header;
}

}  // namespace

std::string safetensors_head(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                             const Metadata& metadata) {
  check_sources(path, tensors);
  std::string header;
  try {
    header = header_text(tensors, metadata);
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError(cat(path.string(), ": expected names and metadata in UTF-8, got other bytes; rename them"));
  }
  if (header.size() > kLongestHeader)
    throw CheckpointError(cat(path.string(), ": expected a header of at most ", kLongestHeader, " bytes, got ",
                              header.size(), "; write the tensors to several files"));
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata) {
  const std::string head = safetensors_head(path, tensors, metadata);
  TemporaryFile temporary(path);
  temporary.file().write(std::as_bytes(std::span(head)));
  for (const TensorSource& tensor : tensors) temporary.file().write(tensor.bytes);
  temporary.commit();
}

}  // namespace lancet
