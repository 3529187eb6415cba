// A GGUF file seen as the model folder that it stands for.
#include <algorithm>
#include <cstring>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

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

/// Rows as the model's class has them. The file has rows 0, d/2, 1, d/2 + 1, ... of each head of d rows.
std::vector<std::byte> with_own_rows(const std::vector<std::byte>& stored, const GgufWeight& weight) {
  const auto rows = static_cast<size_t>(weight.tensor->shape.front()), row_bytes = stored.size() / rows;
  const size_t size = rows / static_cast<size_t>(weight.heads), half = size / 2;
  std::vector<std::byte> own(stored.size());
  for (size_t row = 0; row < rows; ++row) {
    const size_t head = row / size, place = row % size;
    const size_t from = head * size + (place < half ? 2 * place : 2 * (place - half) + 1);
    std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(from * row_bytes), row_bytes,
                own.begin() + static_cast<std::ptrdiff_t>(row * row_bytes));
  }
  return own;
}

void subtract_one(std::vector<std::byte>& bytes) {
  float number = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(number)) {
    std::memcpy(&number, &bytes[at], sizeof(number));
    number -= 1;
    std::memcpy(&bytes[at], &number, sizeof(number));
  }
}

std::vector<std::byte> changed_bytes(const GgufFile& file, const GgufWeight& weight) {
  std::vector<std::byte> bytes(weight.bytes());
  file.files()[weight.tensor->file]->read(weight.begin(), bytes);
  if (weight.change != GgufChange::kLessOne) return with_own_rows(bytes, weight);
  if (weight.tensor->type->dtype != DType::kF32)
    throw CheckpointError(cat(file.path().string(), ": tensor '", weight.tensor->name,
                              "': expected a norm of type F32, ", "got ", weight.tensor->type->name,
                              ": convert the model again with a llama.cpp of today"));
  subtract_one(bytes);
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
