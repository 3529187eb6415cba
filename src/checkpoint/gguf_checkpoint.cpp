// A GGUF file seen as the model folder that it stands for.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/row_order.h"

namespace lancet {
namespace {

/// The tensor as others see it: plain numbers, or rows of bytes under the name of their type.
TensorInfo info_of(const GgufWeight& weight) {
  const GgufType& type = *weight.tensor->type;
  TensorInfo info{.name = weight.name, .shape = weight.shape()};
  if (type.is_plain()) {
    info.dtype = *type.dtype;
    return info;
  }
  info.name += cat(".", type.name);
  info.dtype = DType::kU8;
  info.shape.back() = info.shape.back() / type.block_numbers * type.block_bytes;
  return info;
}

/// Rows as the model's class has them.
std::vector<std::byte> with_own_rows(const std::vector<std::byte>& stored, const GgufWeight& weight) {
  const std::vector<int64_t> order = file_rows(weight.change, weight.tensor->shape.front(), weight.heads);
  const size_t row_bytes = stored.size() / order.size();
  std::vector<std::byte> own;
  own.reserve(stored.size());
  for (const int64_t row : order) {
    const auto from = stored.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(row) * row_bytes);
    own.insert(own.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes));
  }
  return own;
}

/// Numbers [out, in] as [in, out].
std::vector<std::byte> transposed(const std::vector<std::byte>& stored, const GgufTensor& tensor) {
  const auto rows = static_cast<size_t>(tensor.shape[0]), columns = static_cast<size_t>(tensor.shape[1]);
  const size_t bytes = stored.size() / (rows * columns);
  std::vector<std::byte> own(stored.size());
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(&own[(column * rows + row) * bytes], &stored[(row * columns + column) * bytes], bytes);
  return own;
}

template <typename Change>
void change_numbers(std::vector<std::byte>& bytes, Change change) {
  float number = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(number)) {
    std::memcpy(&number, &bytes[at], sizeof(number));
    number = change(number);
    std::memcpy(&bytes[at], &number, sizeof(number));
  }
}

std::vector<std::byte> changed_bytes(const GgufFile& file, const GgufWeight& weight) {
  std::vector<std::byte> bytes(weight.bytes());
  file.files()[weight.tensor->file]->read(weight.begin(), bytes);
  if (moves_rows(weight.change)) return with_own_rows(bytes, weight);
  if (weight.change == GgufChange::kTransposed) return transposed(bytes, *weight.tensor);
  if (weight.tensor->type->dtype != DType::kF32)
    throw CheckpointError(cat(file.path().string(), ": tensor '", weight.tensor->name,
                              "': expected numbers of type F32, got ", weight.tensor->type->name,
                              ": convert the model again with a llama.cpp of today"));
  if (weight.change == GgufChange::kLessOne)
    change_numbers(bytes, [](float number) { return number - 1; });
  else
    change_numbers(bytes, [&](float number) {
      if (number < 0 && std::isfinite(number)) return std::log(-number);
      throw CheckpointError(cat(file.path().string(), ": tensor '", weight.tensor->name,
                                "': expected decays below 0, got ", number,
                                ": the file is damaged, download it again"));
    });
  return bytes;
}

/// Tensors that the file has in another form, in memory.
TensorFile changed_tensors(const GgufSource& source) {
  std::vector<TensorInfo> infos;
  std::vector<std::byte> all;
  constexpr uint64_t kAlignment = 32;
  uint64_t size = 0;
  for (const GgufWeight& weight : source.weights)
    if (weight.change != GgufChange::kNone) size += weight.bytes() + kAlignment;
  all.reserve(size);
  for (const GgufWeight& weight : source.weights) {
    if (weight.change == GgufChange::kNone) continue;
    TensorInfo& info = infos.emplace_back(info_of(weight));
    const std::vector<std::byte> bytes = changed_bytes(source.file, weight);
    all.resize((all.size() + kAlignment - 1) / kAlignment * kAlignment);
    info.begin = all.size();
    all.insert(all.end(), bytes.begin(), bytes.end());
    info.end = all.size();
    count_progress();
  }
  return {MappedFile::in_memory(source.file.path(), all), std::move(infos), {}};
}

}  // namespace

Checkpoint Checkpoint::open_gguf(const std::filesystem::path& path) {
  GgufFile file = GgufFile::open(path);
  Checkpoint checkpoint;
  checkpoint.folder_ = path;
  checkpoint.config_text_ = *gguf_side_text(file, "config.json");
  for (const std::string& name : gguf_side_names(file)) {
    const std::string text = *gguf_side_text(file, name);
    checkpoint.side_files_.push_back(MappedFile::in_memory(path / name, std::as_bytes(std::span(text))));
  }
  const auto source = std::make_shared<GgufSource>(GgufSource{std::move(file), {}});
  source->weights = gguf_weights(source->file);
  std::vector<std::vector<TensorInfo>> infos(source->file.files().size());
  for (const GgufWeight& weight : source->weights) {
    if (weight.change != GgufChange::kNone) continue;
    TensorInfo info = info_of(weight);
    info.begin = weight.begin();
    info.end = info.begin + weight.bytes();
    infos[weight.tensor->file].push_back(std::move(info));
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    std::ranges::sort(infos[i], {}, &TensorInfo::begin);
    checkpoint.shards_.emplace_back(source->file.files()[i], std::move(infos[i]), Metadata());
  }
  checkpoint.shards_.push_back(changed_tensors(*source));
  checkpoint.gguf_ = source;
  for (size_t i = 0; i < checkpoint.shards_.size(); ++i)
    for (const TensorInfo& info : checkpoint.shards_[i].tensors())
      if (!checkpoint.shard_of_.emplace(info.name, i).second)
        throw CheckpointError(cat(path.string(), ": expected each weight once, got ", info.name, " twice"));
  return checkpoint;
}

}  // namespace lancet
