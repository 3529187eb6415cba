#include "lancet/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "found_instead.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "safetensors_format.h"
#include "safetensors_head.h"

namespace lancet {

// Everything is checked before anything is used; what passes here is taken as true by all other code.
// Source of the checks: huggingface/safetensors, README "Format" and safetensors/src/tensor.rs.
// Differs from the reference: keys that stand twice are refused, as its README demands, though its parser keeps the
// last.

namespace {

using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the format is little endian and bytes are used in place");

/// Header object, tensor object, list of sizes.
constexpr int kDeepestHeader = 8;

constexpr std::string_view kDamaged = "the file is truncated or damaged: download it again";
constexpr std::string_view kMalformed =
    "the file is damaged or its writer has a defect: download it again or re-export it";

/// Place of a problem, and the one way to say it.
struct Place {
  const std::filesystem::path& file;
  std::string tensor;  // empty: the file as a whole

  [[noreturn]] void fail(std::string_view expected, std::string_view got, std::string_view remedy) const {
    throw CheckpointError(cat(file.string(), ": ", tensor.empty() ? "" : cat("tensor '", printable(tensor), "': "),
                              "expected ", expected, ", got ", got, "; ", remedy));
  }
};

std::string json_text(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json parse_header(const MappedFile& file, const Place& place, uint64_t& data_begin) {
  const uint64_t size = file.bytes().size();
  if (size < kLengthBytes) place.fail("a safetensors file of at least 8 bytes", cat(size, " bytes"), kDamaged);
  uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLongestHeader)
    place.fail(cat("a header of at most ", kLongestHeader, " bytes"), cat(length, " bytes in the first 8 bytes"),
               "this is not a safetensors file, or it is damaged: download it again");
  if (length > size - kLengthBytes)
    place.fail(cat("a header of ", length, " bytes after the first 8"), cat("a file of ", size, " bytes"), kDamaged);
  std::string text(length, '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  if (text.empty() || text.front() != '{')
    place.fail("a header that begins with '{'",
               text.empty() ? "an empty header" : cat("'", printable(std::string_view(text).substr(0, 1)), "'"),
               "this is not a safetensors file, or it is damaged: download it again");
  data_begin = kLengthBytes + length;
  try {
    return parse_strict_json(text, kDeepestHeader);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(place.file.string(), ": header: ", problem.what(), "; ", kMalformed));
  }
}

Metadata parse_metadata(const Json& json, const Place& place) {
  if (!json.is_object()) place.fail("__metadata__ to be an object", json_text(json), kMalformed);
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      place.fail(cat("__metadata__ entry '", printable(key), "' to be a string"), json_text(value), kMalformed);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

const Json& field(const Json& tensor, const char* name, const Place& place) {
  const auto found = tensor.find(name);
  if (found == tensor.end()) place.fail(cat("a field '", name, "'"), json_text(tensor), kMalformed);
  return *found;
}

DType read_dtype(const Json& json, const Place& place) {
  const std::optional<DType> dtype = json.is_string() ? parse_dtype(json.get_ref<const std::string&>()) : std::nullopt;
  if (!dtype)
    place.fail("dtype to be one of BOOL, U8 ... U64, I8 ... I64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64",
               json_text(json), "re-export the checkpoint with one of these types");
  return *dtype;
}

std::vector<int64_t> read_shape(const Json& json, const Place& place) {
  const auto fail = [&] { place.fail("shape to be a list of sizes >= 0", json_text(json), kMalformed); };
  if (!json.is_array()) fail();
  std::vector<int64_t> shape;
  for (const Json& size : json) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) fail();
    shape.push_back(size.get<int64_t>());
  }
  return shape;
}

/// `begin` and `end` stay relative to the data section here: absolute ones could overflow before they are checked.
TensorInfo read_tensor(const Json& json, const Place& place) {
  if (!json.is_object()) place.fail("an object with dtype, shape and data_offsets", json_text(json), kMalformed);
  TensorInfo info;
  info.name = place.tensor;
  info.dtype = read_dtype(field(json, "dtype", place), place);
  info.shape = read_shape(field(json, "shape", place), place);

  const Json& offsets = field(json, "data_offsets", place);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    place.fail("data_offsets to be two integers >= 0", json_text(offsets), kMalformed);
  info.begin = offsets[0].get<uint64_t>();
  info.end = offsets[1].get<uint64_t>();
  if (info.end < info.begin) place.fail("data_offsets with begin <= end", json_text(offsets), kMalformed);

  const std::optional<uint64_t> size_bytes = stored_bytes(info.dtype, info.shape);
  if (!size_bytes) place.fail("a shape whose size in bytes fits in 63 bits", shape_text(info.shape), kMalformed);
  if (info.end - info.begin != *size_bytes)
    place.fail(cat(*size_bytes, " bytes for ", dtype_name(info.dtype), " ", shape_text(info.shape)),
               cat(info.end - info.begin, " bytes, data_offsets ", json_text(offsets)), kMalformed);
  return info;
}

/// The data section holds the tensors side by side: nothing between them, nothing after them, no byte twice.
void check_cover(const std::vector<TensorInfo>& tensors, uint64_t data_bytes, const std::filesystem::path& path) {
  uint64_t covered = 0;
  std::string_view previous;
  for (const TensorInfo& info : tensors) {
    const Place place{path, info.name};
    if (info.end > data_bytes)
      place.fail(cat("data within the ", data_bytes, " bytes after the header"),
                 cat("data_offsets [", info.begin, ", ", info.end, "]"), kDamaged);
    if (info.begin < covered)
      place.fail(cat("data that begins at offset ", covered, ", where tensor '", printable(previous), "' ends"),
                 cat("offset ", info.begin, ": the two overlap"), kMalformed);
    if (info.begin > covered)
      place.fail(cat("data that begins at offset ", covered, ", where the tensor before it ends"),
                 cat("offset ", info.begin, ": a gap of ", info.begin - covered, " bytes"), kMalformed);
    covered = info.end;
    previous = info.name;
  }
  if (covered != data_bytes)
    Place{path, ""}.fail(cat(covered, " bytes of data after the header, where the last tensor ends"),
                         cat(data_bytes, " bytes: ", data_bytes - covered, " bytes belong to no tensor"), kMalformed);
}

}  // namespace

SafetensorsReader SafetensorsReader::open(const std::filesystem::path& path) {
  refuse_other_file(path, "a safetensors file");
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  uint64_t data_begin = 0;
  const Json header = parse_header(*file, {path, ""}, data_begin);
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey)
      metadata = parse_metadata(value, {path, ""});
    else
      tensors.push_back(read_tensor(value, {path, name}));
  }
  // Empty tensors first among equals: they lie before the tensor that begins at the same offset.
  std::ranges::sort(tensors, {}, [](const TensorInfo& info) { return std::tie(info.begin, info.end, info.name); });
  check_cover(tensors, file->bytes().size() - data_begin, path);
  for (TensorInfo& info : tensors) {
    info.begin += data_begin;
    info.end += data_begin;
  }
  return SafetensorsReader(std::move(file), std::move(tensors), std::move(metadata));
}

TensorFile::TensorFile(std::shared_ptr<const MappedFile> file, std::vector<TensorInfo> tensors, Metadata metadata)
    : file_(std::move(file)), tensors_(std::move(tensors)), metadata_(std::move(metadata)) {
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const TensorInfo& TensorFile::info(std::string_view name) const {
  if (const TensorInfo* info = find(name)) return *info;
  throw CheckpointError(cat(path().string(), ": expected a tensor '", printable(name), "', got a file of ",
                            tensors_.size(), " tensors without it; check the name"));
}

TensorView TensorFile::view(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  return {tensor.dtype, tensor.shape, file_->bytes().subspan(tensor.begin, tensor.end - tensor.begin), file_};
}

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
