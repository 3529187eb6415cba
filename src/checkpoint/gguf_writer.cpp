#include <array>
#include <bit>
#include <set>
#include <stdexcept>

#include "lancet/checkpoint/gguf.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little endian");

constexpr std::string_view kGgufMagic = "GGUF";
constexpr uint32_t kGgufVersion = 3;
constexpr uint64_t kGgufAlignment = 32;
constexpr size_t kMostGgufDimensions = 4, kLongestGgufName = 63;

enum class ValueType : uint32_t { kUint32 = 4, kFloat32 = 6, kString = 8 };

template <typename Number>
void put(std::string& head, Number number) {
  head.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void put_string(std::string& head, std::string_view text) {
  put(head, static_cast<uint64_t>(text.size()));
  head += text;
}

void put_value(std::string& head, const GgufValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    put(head, ValueType::kString);
    put_string(head, *text);
  } else if (const auto* number = std::get_if<float>(&value)) {
    put(head, ValueType::kFloat32);
    put(head, *number);
  } else {
    put(head, ValueType::kUint32);
    put(head, std::get<uint32_t>(value));
  }
}

uint32_t type_number(const TensorSource& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kBF16:
      return 30;
    default:
      throw std::logic_error(cat(tensor.name, ": no type of a GGUF file: ", dtype_name(tensor.dtype)));
  }
}

void check_tensor(const TensorSource& tensor) {
  int64_t count = bytes_per_element(tensor.dtype);
  for (const int64_t size : tensor.shape) count *= size;
  if (tensor.name.size() > kLongestGgufName || tensor.shape.empty() || tensor.shape.size() > kMostGgufDimensions ||
      static_cast<size_t>(count) != tensor.bytes.size())
    throw std::logic_error(cat(tensor.name, ": no tensor of a GGUF file: ", shape_text(tensor.shape)));
}

uint64_t aligned(uint64_t bytes) { return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment; }

/// Makes the file's head, up to the first tensor's bytes.
std::string gguf_head(std::span<const GgufEntry> metadata, std::span<const TensorSource> tensors) {
  std::string head(kGgufMagic);
  put(head, kGgufVersion);
  put(head, static_cast<uint64_t>(tensors.size()));
  put(head, static_cast<uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    put_string(head, key);
    put_value(head, value);
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorSource& tensor : tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second) throw std::logic_error(tensor.name + ": twice in a GGUF file");
    put_string(head, tensor.name);
    put(head, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) put(head, static_cast<uint64_t>(tensor.shape[i]));
    put(head, type_number(tensor));
    put(head, offset);
    offset += aligned(tensor.bytes.size());
  }
  head.resize(aligned(head.size()), '\0');
  return head;
}

}  // namespace

void write_gguf(const std::filesystem::path& path, std::span<const GgufEntry> metadata,
                std::span<const TensorSource> tensors) {
  const std::string head = gguf_head(metadata, tensors);
  constexpr std::array<std::byte, kGgufAlignment> kZeros{};
  TemporaryFile temporary(path);
  temporary.file().write(std::as_bytes(std::span(head)));
  for (const TensorSource& tensor : tensors) {
    temporary.file().write(tensor.bytes);
    temporary.file().write(std::span(kZeros).first(aligned(tensor.bytes.size()) - tensor.bytes.size()));
  }
  temporary.commit();
}

}  // namespace lancet
