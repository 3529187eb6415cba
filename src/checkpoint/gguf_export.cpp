#include "lancet/checkpoint/gguf_export.h"

#include <algorithm>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

std::vector<GgufWritten> plan_tensors(const GgufFile& base, const std::map<std::string, GgufExchange>& exchanged) {
  std::vector<GgufWritten> tensors;
  size_t found = 0;
  for (const GgufTensor& tensor : base.tensors()) {
    const auto other = exchanged.find(tensor.name);
    const GgufType* type = other == exchanged.end() ? tensor.type : other->second.type;
    tensors.push_back({.base = &tensor, .type = type, .bytes = type->bytes_of(tensor.shape)});
    if (other == exchanged.end()) continue;
    ++found;
    if (other->second.bytes.size() != tensors.back().bytes || tensor.shape.back() % type->block_numbers != 0)
      throw std::logic_error(cat(tensor.name, ": bytes that do not agree with its shape"));
  }
  if (found != exchanged.size()) throw std::logic_error("a tensor that the GGUF file does not have");
  return tensors;
}

/// Whether the file has the tensors.
bool holds(const std::filesystem::path& file, std::span<const GgufWritten> tensors) {
  const GgufFile written = GgufFile::open(file);
  return std::ranges::equal(written.tensors(), tensors, [](const GgufTensor& a, const GgufWritten& b) {
    return a.name == b.base->name && a.type == b.type && a.shape == b.base->shape && a.bytes == b.bytes;
  });
}

}  // namespace

void export_gguf(const Checkpoint& base, const std::map<std::string, GgufExchange>& exchanged,
                 std::span<const GgufAddition> additions, const std::filesystem::path& target) {
  if (base.gguf() == nullptr) throw std::logic_error("the base is no GGUF file");
  const GgufFile& file = base.gguf()->file;
  std::vector<GgufWritten> tensors = plan_tensors(file, exchanged);
  base.check_unchanged();
  const std::string head = gguf_head(file, tensors, additions);
  TemporaryFile temporary(target);
  FileHandle& to = temporary.file();
  to.write(std::as_bytes(std::span(head)));
  uint64_t at = 0;  // from the first tensor's place on
  for (const GgufWritten& tensor : tensors) {
    const std::vector<std::byte> filling(tensor.begin - at);
    to.write(filling);
    const auto other = exchanged.find(tensor.base->name);
    const MappedFile& from = *file.files()[tensor.base->file];
    if (other != exchanged.end())
      to.write(other->second.bytes);
    else
      append_range({from.descriptor(), from.path(), tensor.base->begin, tensor.bytes}, to);
    at = tensor.begin + tensor.bytes;
    count_progress();
  }
  temporary.commit();
  base.check_unchanged();
  if (!holds(target, tensors))
    throw CheckpointError(cat(target.string(), ": expected the tensors of ", file.path().string(),
                              ", got others: the base was written to meanwhile, start again"));
}

}  // namespace lancet
