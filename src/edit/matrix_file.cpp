#include "matrix_file.h"

#include <torch/types.h>

#include <array>
#include <charconv>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

constexpr const char* kFormatFact = "format";

CheckpointError unusable(const std::filesystem::path& path, std::string_view problem) {
  return CheckpointError(cat(path.string(), ": ", problem, ": remove the file, it will be made again"));
}

/// The reader's advice is for files that were downloaded: what it says before that is kept.
SafetensorsReader open_matrix(const std::filesystem::path& path) {
  try {
    return SafetensorsReader::open(path);
  } catch (const CheckpointError& error) {
    std::string message = error.what();
    if (const std::string begin = path.string() + ": "; message.starts_with(begin)) message.erase(0, begin.size());
    throw unusable(path, message.substr(0, message.rfind("; ")));
  }
}

bool fits(const std::vector<int64_t>& shape, MatrixShape expected, int64_t size) {
  return shape.size() == 2 && shape[1] == size && (expected == MatrixShape::kWide || shape[0] == size);
}

}  // namespace

double MatrixFile::number(std::string_view fact) const {
  const auto found = facts.find(std::string(fact));
  double value = 0;
  if (found != facts.end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [stop, error] = std::from_chars(found->second.data(), end, value);
    if (error == std::errc() && stop == end) return value;
  }
  throw unusable(path, cat("a cached ", kind.title, " without its '", fact, "'"));
}

std::string exact_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts) {
  facts[kFormatFact] = kind.format;
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);  // a failure shows when the file is written
  write_tensors(path, {{std::string(kind.tensor), matrix}}, facts);
}

MatrixFile map_matrix(const std::filesystem::path& path, const MatrixKind& kind, int64_t size) {
  const SafetensorsReader file = open_matrix(path);
  const auto format = file.metadata().find(kFormatFact);
  if (format == file.metadata().end() || format->second != kind.format || !file.contains(kind.tensor) ||
      file.info(kind.tensor).dtype != DType::kF64 || !fits(file.info(kind.tensor).shape, kind.shape, size))
    throw unusable(path, cat("not a cached ", kind.title, " of size ", size));
  return {to_tensor(file.view(kind.tensor)), file.metadata(), path, kind};
}

}  // namespace lancet
