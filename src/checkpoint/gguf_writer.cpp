#include <algorithm>
#include <stdexcept>

#include "lancet/checkpoint/gguf.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

GgufNewTensor described(const TensorSource& tensor) {
  const auto types = gguf_types();
  const auto type = std::ranges::find(types, std::optional(tensor.dtype), &GgufType::dtype);
  if (type == types.end() || tensor.dtype == DType::kF64)
    throw std::logic_error(cat(tensor.name, ": no type of a GGUF file: ", dtype_name(tensor.dtype)));
  GgufNewTensor described{.name = tensor.name, .type = &*type, .shape = tensor.shape};
  if (described.bytes() != tensor.bytes.size())
    throw std::logic_error(cat(tensor.name, ": no tensor of a GGUF file: ", shape_text(tensor.shape)));
  return described;
}

}  // namespace

void write_gguf(const std::filesystem::path& path, std::span<const GgufEntry> metadata,
                std::span<const TensorSource> tensors) {
  std::vector<GgufNewTensor> written;
  for (const TensorSource& tensor : tensors) written.push_back(described(tensor));
  const std::string head = new_gguf_head(metadata, written);
  TemporaryFile temporary(path);
  temporary.file().write(std::as_bytes(std::span(head)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    temporary.file().write(tensors[i].bytes);
    temporary.file().write(std::vector<std::byte>(written[i].padding()));
  }
  temporary.commit();
}

}  // namespace lancet
