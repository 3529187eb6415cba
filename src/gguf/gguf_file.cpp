#include "lancet/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "head_reader.h"
#include "lancet/core/strict_json.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the file is little endian");

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kLongestName = 65'535;     // of metadata
constexpr uint64_t kLongestTensorName = 512;  // llama.cpp has 63
constexpr uint64_t kMostMetadata = 100'000;
constexpr uint64_t kMostTensors = 1'000'000;
constexpr uint32_t kMostDimensions = 4;
constexpr int64_t kUsualAlignment = 32, kLargestAlignment = 1 << 20;
constexpr std::string_view kAlignmentKey = "general.alignment";

/// Bytes of a value of a fixed size; 0: it has none.
uint64_t size_of(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kText:
    case GgufValueType::kList:
      break;
  }
  return 0;
}

GgufValueType take_type(HeadReader& head) {
  const uint32_t type = head.take<uint32_t>();
  if (type > static_cast<uint32_t>(GgufValueType::kF64)) head.fail("a type of 0 to 12", cat(type));
  return static_cast<GgufValueType>(type);
}

/// Goes past a value, whose place it returns.
GgufPlace take_place(HeadReader& head) {
  GgufPlace place{.type = take_type(head)};
  if (place.type == GgufValueType::kList) {
    place.is_list = true;
    place.type = take_type(head);
    place.count = head.take<uint64_t>();
    if (place.type == GgufValueType::kList) head.fail("a list of texts or numbers", "a list of lists");
  }
  place.begin = head.at();
  if (place.type != GgufValueType::kText) {
    head.skip(place.count, size_of(place.type));
    return place;
  }
  if (place.count > head.left() / sizeof(uint64_t)) head.need(head.left() + 1);
  for (uint64_t i = 0; i < place.count; ++i) head.skip_text();
  return place;
}

/// Offset is from the first tensor's place on.
GgufTensor take_tensor(HeadReader& head, uint64_t alignment) {
  GgufTensor tensor;
  head.set_subject("a tensor's name");
  tensor.name = head.take_text(kLongestTensorName);
  if (first_invalid_utf8(tensor.name)) head.fail("a text in UTF-8", "other bytes");
  head.set_subject(cat("tensor '", printable(tensor.name), "'"));
  if (tensor.name.empty()) head.fail("a name", "none");
  const uint32_t dimensions = head.take<uint32_t>();
  if (dimensions < 1 || dimensions > kMostDimensions) head.fail("1 to 4 dimensions", cat(dimensions));
  int64_t count = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t size = head.take<uint64_t>();
    if (size < 1 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(count, static_cast<int64_t>(size), &count))
      head.fail("sizes of 1 or more, whose product is below 2^63", cat("a size of ", size));
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  const uint32_t type = head.take<uint32_t>();
  tensor.type = find_gguf_type(type);
  if (tensor.type == nullptr)
    head.refuse(cat("a type that lancet reads (", gguf_type_names(), ")"),
                cat(gguf_type_text(type), ": take the model in one of these types"));
  if (tensor.shape.back() % tensor.type->block_numbers != 0)
    head.fail(cat("rows of whole blocks of ", tensor.type->block_numbers, " for ", tensor.type->name),
              cat(tensor.shape.back(), " numbers a row"));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count / tensor.type->block_numbers, tensor.type->block_bytes, &bytes))
    head.fail("fewer than 2^63 bytes", cat("more for ", shape_text(tensor.shape)));
  tensor.bytes = static_cast<uint64_t>(bytes);
  tensor.begin = head.take<uint64_t>();
  if (tensor.begin % alignment != 0) head.fail(cat("an offset of a multiple of ", alignment), cat(tensor.begin));
  return tensor;
}

uint64_t aligned(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/// "X-00002-of-00003.gguf": the number, from 0 on, and how many there are.
struct SplitName {
  std::string begin;
  int64_t number = 0, count = 1;
};
std::optional<SplitName> split_name(const std::string& name) {
  constexpr std::string_view kEnd = ".gguf", kOf = "-of-";
  constexpr size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits + kEnd.size();
  if (name.size() <= kTail || !name.ends_with(kEnd)) return std::nullopt;
  const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
  const auto number = parse_whole_number(tail.substr(1, kDigits));
  const auto count = parse_whole_number(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !number || !count || *number < 1)
    return std::nullopt;
  return SplitName{name.substr(0, name.size() - kTail), *number - 1, *count};
}

std::string name_of_part(const SplitName& name, int64_t number) {
  const auto digits = [](int64_t value) {
    const std::string text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return cat(name.begin, "-", digits(number + 1), "-of-", digits(name.count), ".gguf");
}

}  // namespace

bool is_gguf_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // opening a pipe would wait
  std::ifstream file(path, std::ios::binary);
  std::string begin(kMagic.size(), '\0');
  return file.read(begin.data(), std::ssize(begin)) && begin == kMagic;
}

namespace {

struct HeadCounts {
  uint32_t version = 0;
  uint64_t tensors = 0, metadata = 0;
};

HeadCounts take_counts(HeadReader& head, const fs::path& path) {
  std::string magic(kMagic.size(), '\0');
  for (char& c : magic) c = head.take<char>();
  if (magic != kMagic) head.fail("the letters GGUF at its begin", "others");
  HeadCounts counts{.version = head.take<uint32_t>()};
  if (counts.version != 2 && counts.version != 3)
    throw CheckpointError(cat(path.string(), ": expected a GGUF file of version 2 or 3, got ",
                              (counts.version & 0xFFFFU) == 0 ? std::string("one for computers of the other byte order")
                                                              : cat("version ", counts.version),
                              ": convert the model again with a llama.cpp of today"));
  counts.tensors = head.take<uint64_t>();
  counts.metadata = head.take<uint64_t>();
  if (counts.tensors > kMostTensors) head.fail(cat("at most ", kMostTensors, " tensors"), cat(counts.tensors));
  if (counts.metadata > kMostMetadata)
    head.fail(cat("at most ", kMostMetadata, " values of metadata"), cat(counts.metadata));
  return counts;
}

GgufMetadata take_metadata(HeadReader& head, uint64_t count) {
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    head.set_subject("a name of metadata");
    std::string key = head.take_text(kLongestName);
    if (first_invalid_utf8(key)) head.fail("a text in UTF-8", "other bytes");
    head.set_subject(cat("metadata '", printable(key), "'"));
    const GgufPlace place = take_place(head);
    if (!metadata.emplace(std::move(key), place).second) head.fail("each name once", "it twice");
  }
  return metadata;
}

/// Offsets become the file's own.
void check_places(HeadReader& head, std::span<GgufTensor> tensors, uint64_t data_begin, uint64_t file_bytes) {
  const uint64_t data_bytes = file_bytes < data_begin ? 0 : file_bytes - data_begin;
  std::vector<const GgufTensor*> by_place;
  for (GgufTensor& tensor : tensors) {
    head.set_subject(cat("tensor '", printable(tensor.name), "'"));
    if (tensor.begin > data_bytes || tensor.bytes > data_bytes - tensor.begin)
      head.fail(cat("its ", tensor.bytes, " bytes within the file"),
                cat("offset ", tensor.begin, " of ", data_bytes, " bytes of data"));
    tensor.begin += data_begin;
    by_place.push_back(&tensor);
  }
  std::ranges::sort(by_place, {}, &GgufTensor::begin);
  for (size_t i = 1; i < by_place.size(); ++i) {
    const GgufTensor &before = *by_place[i - 1], &tensor = *by_place[i];
    head.set_subject(cat("tensor '", printable(tensor.name), "'"));
    if (tensor.begin < before.begin + before.bytes)
      head.fail("bytes of its own", cat("a place within tensor '", printable(before.name), "'"));
  }
}

}  // namespace

void GgufFile::add_file(const fs::path& path) {
  const size_t number = files_.size(), first = tensors_.size();
  files_.push_back(MappedFile::open(path));
  const MappedFile& file = *files_.back();
  HeadReader head(file, 0);
  const HeadCounts counts = take_counts(head, path);
  version_ = counts.version;
  GgufMetadata metadata = take_metadata(head, counts.metadata);
  if (number == 0) {
    metadata_ = std::move(metadata);
    const int64_t alignment = whole(kAlignmentKey).value_or(kUsualAlignment);
    if (alignment < 1 || alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0)
      refuse(kAlignmentKey, cat("a power of two up to ", kLargestAlignment), cat(alignment));
    alignment_ = static_cast<uint64_t>(alignment);
  }
  for (uint64_t i = 0; i < counts.tensors; ++i) {
    tensors_.push_back(take_tensor(head, alignment_));
    tensors_.back().file = number;
    if (!by_name_.emplace(tensors_.back().name, tensors_.size() - 1).second) head.fail("each name once", "it twice");
  }
  data_begins_.push_back(aligned(head.at(), alignment_));
  check_places(head, std::span(tensors_).subspan(first), data_begins_.back(), file.bytes().size());
}

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile model;
  model.add_file(path);
  const int64_t parts = model.whole("split.count").value_or(1);
  if (parts <= 1) return model;
  const std::optional<SplitName> name = split_name(path.filename().string());
  if (!name || name->number != 0 || name->count != parts || model.whole("split.no").value_or(0) != 0)
    model.refuse("split.count",
                 "the first file of a split model, of a name like X-00001-of-00003.gguf, with the others beside it",
                 cat("a model of ", parts, " files in ", path.filename().string()));
  for (int64_t i = 1; i < parts; ++i) {
    const fs::path part = path.parent_path() / name_of_part(*name, i);
    if (!has_entry(part))
      throw CheckpointError(cat(path.string(), ": expected ", parts, " files, got none of the name ",
                                part.filename().string(), ": download the missing file"));
    model.add_file(part);
  }
  const int64_t tensors = model.whole("split.tensors.count").value_or(std::ssize(model.tensors_));
  if (tensors != std::ssize(model.tensors_))
    model.refuse("split.tensors.count", cat(std::ssize(model.tensors_), ", as the files have"), cat(tensors));
  return model;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::refuse(std::string_view key, std::string_view expected, std::string_view got) const {
  throw CheckpointError(
      cat(path().string(), ": metadata '", printable(std::string(key)), "': expected ", expected, ", got ", got));
}

const GgufPlace* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

namespace {

double take_number(HeadReader& head, GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
      return head.take<uint8_t>();
    case GgufValueType::kBool:
      return head.take<uint8_t>() != 0 ? 1 : 0;
    case GgufValueType::kI8:
      return head.take<int8_t>();
    case GgufValueType::kU16:
      return head.take<uint16_t>();
    case GgufValueType::kI16:
      return head.take<int16_t>();
    case GgufValueType::kU32:
      return head.take<uint32_t>();
    case GgufValueType::kI32:
      return head.take<int32_t>();
    case GgufValueType::kF32:
      return static_cast<double>(head.take<float>());
    case GgufValueType::kU64:
      return static_cast<double>(head.take<uint64_t>());
    case GgufValueType::kI64:
      return static_cast<double>(head.take<int64_t>());
    case GgufValueType::kF64:
      return head.take<double>();
    case GgufValueType::kText:
    case GgufValueType::kList:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

namespace {

/// A list of metadata has one element for each token, merge or layer. Published vocabularies have up to 262,144 tokens.
constexpr uint64_t kMostElements = uint64_t{1} << 22;

}  // namespace

std::vector<double> GgufFile::numbers(std::string_view key) const {
  const GgufPlace* place = find(key);
  if (place == nullptr) return {};
  if (place->type == GgufValueType::kText) refuse(key, "numbers", "a text");
  if (place->count > kMostElements) refuse(key, cat("at most ", kMostElements, " numbers"), cat(place->count));
  HeadReader head(*files_.front(), place->begin);
  std::vector<double> numbers;
  for (uint64_t i = 0; i < place->count; ++i) numbers.push_back(take_number(head, place->type));
  return numbers;
}

std::vector<std::string> GgufFile::texts(std::string_view key) const {
  const GgufPlace* place = find(key);
  if (place == nullptr) return {};
  if (place->type != GgufValueType::kText) refuse(key, "texts", "numbers");
  if (place->count > kMostElements) refuse(key, cat("at most ", kMostElements, " texts"), cat(place->count));
  HeadReader head(*files_.front(), place->begin);
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < place->count; ++i) texts.push_back(head.take_text(kLongestGgufText));
  return texts;
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
  const GgufPlace* place = find(key);
  if (place == nullptr) return std::nullopt;
  if (place->type != GgufValueType::kText || place->is_list) refuse(key, "a text", "another kind of value");
  std::string text = texts(key).front();
  if (first_invalid_utf8(text)) refuse(key, "a text in UTF-8", "other bytes");
  return text;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufPlace* place = find(key);
  if (place == nullptr) return std::nullopt;
  if (place->count != 1) refuse(key, "a number", cat("a list of ", place->count));
  const double value = numbers(key).front();
  if (!std::isfinite(value)) refuse(key, "a finite number", cat(value));
  return value;
}

std::optional<int64_t> GgufFile::whole(std::string_view key) const {
  constexpr double kMost = 1e15;  // whole numbers of f64 go on to 9e15
  const std::optional<double> value = number(key);
  if (value && (!(std::abs(*value) <= kMost) || std::floor(*value) != *value))
    refuse(key, "a whole number", cat(*value));
  return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
}

std::optional<bool> GgufFile::flag(std::string_view key) const {
  const std::optional<double> value = number(key);
  return value ? std::optional(*value != 0) : std::nullopt;
}

}  // namespace lancet
