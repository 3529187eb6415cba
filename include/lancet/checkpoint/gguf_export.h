// Writes a GGUF file with some tensors' bytes exchanged; the others are copied byte for byte.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/gguf/gguf_head.h"

namespace lancet {

/// Other bytes of a tensor, perhaps of another type.
struct GgufExchange {
  const GgufType* type = nullptr;
  std::vector<std::byte> bytes;
};

/// `exchanged`: by the tensors' names in the file. A split base becomes one file. The file appears complete or not at
/// all, and is read back. Throws: CheckpointError, also for a base that is not unchanged before and after;
/// std::logic_error for a base that is no GGUF file, and for tensors that it does not have or of another size.
void export_gguf(const Checkpoint& base, const std::map<std::string, GgufExchange>& exchanged,
                 std::span<const GgufAddition> additions, const std::filesystem::path& target);

}  // namespace lancet
