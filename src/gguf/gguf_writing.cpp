#include "lancet/gguf/gguf_writing.h"

#include <bit>
#include <set>
#include <stdexcept>
#include <string_view>

#include "head_writer.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_file.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little endian");

constexpr uint32_t kWrittenVersion = 3;
constexpr uint64_t kWrittenAlignment = 32;
constexpr size_t kMostNewDimensions = 4;

/// Adds a value with its type, or the type and the elements of a list.
struct ValueWriter {
  std::string& head;

  void operator()(const std::string& text) const {
    put_number(head, GgufValueType::kText);
    put_text(head, text);
  }
  void operator()(uint32_t number) const { put_typed(GgufValueType::kU32, number); }
  void operator()(float number) const { put_typed(GgufValueType::kF32, number); }
  void operator()(bool flag) const { put_typed(GgufValueType::kBool, static_cast<uint8_t>(flag)); }
  void operator()(const std::vector<std::string>& texts) const {
    begin_list(GgufValueType::kText, texts.size());
    for (const std::string& text : texts) put_text(head, text);
  }
  void operator()(const std::vector<float>& numbers) const { put_list(GgufValueType::kF32, numbers); }
  void operator()(const std::vector<int32_t>& numbers) const { put_list(GgufValueType::kI32, numbers); }

 private:
  template <typename Number>
  void put_typed(GgufValueType type, Number number) const {
    put_number(head, type);
    put_number(head, number);
  }

  void begin_list(GgufValueType type, size_t count) const {
    put_number(head, GgufValueType::kList);
    put_number(head, type);
    put_number(head, static_cast<uint64_t>(count));
  }

  template <typename Number>
  void put_list(GgufValueType type, const std::vector<Number>& numbers) const {
    begin_list(type, numbers.size());
    for (const Number number : numbers) put_number(head, number);
  }
};

}  // namespace

uint64_t GgufNewTensor::bytes() const { return type->bytes_of(shape); }

uint64_t GgufNewTensor::padding() const { return aligned_to(bytes(), kWrittenAlignment) - bytes(); }

std::string new_gguf_head(std::span<const GgufEntry> metadata, std::span<GgufNewTensor> tensors) {
  std::string head = "GGUF";
  put_number(head, kWrittenVersion);
  put_number(head, static_cast<uint64_t>(tensors.size()));
  put_number(head, static_cast<uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    put_text(head, key);
    std::visit(ValueWriter{head}, value);
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (GgufNewTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) throw std::logic_error(tensor.name + ": twice in a GGUF file");
    if (tensor.name.size() > kLongestGgufTensorName || tensor.shape.empty() || tensor.shape.size() > kMostNewDimensions)
      throw std::logic_error(cat(tensor.name, ": no tensor of a GGUF file: ", shape_text(tensor.shape)));
    put_text(head, tensor.name);
    put_shape(head, tensor.shape);
    put_number(head, tensor.type->number);
    put_number(head, offset);
    tensor.begin = offset;
    offset += tensor.bytes() + tensor.padding();
  }
  head.resize(aligned_to(head.size(), kWrittenAlignment), '\0');
  return head;
}

}  // namespace lancet
