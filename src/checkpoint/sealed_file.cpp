// The hash is one of hashes: of pieces, so that several threads read and hash a file of gigabytes, each piece while it
// is in the processor's cache.
#include "lancet/checkpoint/sealed_file.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Part of what the hash means.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
/// What is worth a thread.
constexpr uint64_t kBytesPerThread = uint64_t{4} << 20;
constexpr size_t kMostThreads = 8;

struct Extent {
  size_t tensor;
  uint64_t begin, end;  // in the tensor
};

std::vector<Extent> extents_of(std::span<const TensorInfo> tensors) {
  std::vector<Extent> extents;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t size = tensors[i].end - tensors[i].begin;
    for (uint64_t begin = 0; begin < size; begin += kPieceBytes)
      extents.push_back({i, begin, std::min(size, begin + kPieceBytes)});
  }
  return extents;
}

/// `piece`: the bytes of an extent, which it may read into the buffer.
using PieceBytes = std::function<std::span<const std::byte>(const Extent&, std::span<std::byte> buffer)>;

std::vector<std::string> hash_pieces(const std::vector<Extent>& extents, const PieceBytes& piece) {
  std::vector<std::string> hashes(extents.size());
  const size_t n_threads = std::clamp<size_t>(
      std::min<size_t>(std::thread::hardware_concurrency(), extents.size() * kPieceBytes / kBytesPerThread), 1,
      kMostThreads);
  for_each_in_parallel(extents.size(), n_threads, [&](size_t i) {
    thread_local std::vector<std::byte> buffer(kPieceBytes);
    hashes[i] = ContentHash().add(piece(extents[i], buffer)).hex();
  });
  return hashes;
}

/// XXH3-128, in lower-case hexadecimal digits, of a list in which every entry has its length before it (64 bits, little
/// endian): name and value of every metadata entry but the hash's own, by name; the number of tensors; of each, by its
/// place in the file, name, type and shape; of each, for every piece of its bytes, the piece's own hash.
std::string hash_all(const Metadata& facts, std::span<const TensorInfo> tensors, std::span<const std::string> pieces) {
  ContentHash hash;
  for (const auto& [name, value] : facts)
    if (name != kContentHashFact) hash.add(name).add(value);
  hash.add(static_cast<int64_t>(tensors.size()));
  for (const TensorInfo& tensor : tensors)
    hash.add(tensor.name).add(dtype_name(tensor.dtype)).add(shape_text(tensor.shape));
  for (const std::string& piece : pieces) hash.add(piece);
  return hash.hex();
}

/// Returns the error's text without the reader's advice, which is for files that were downloaded.
std::string problem_of(const CheckpointError& error) {
  const std::string message = error.what();
  return message.substr(0, message.rfind("; "));
}

}  // namespace

std::string sealed_hash(const SealedFormat& format, std::span<const TensorSource> tensors, Metadata facts) {
  std::vector<TensorInfo> infos;
  for (const TensorSource& tensor : tensors)
    infos.push_back({tensor.name, tensor.dtype, tensor.shape, 0, tensor.bytes.size()});
  facts[kFormatFact] = format.name;
  const std::vector<std::string> pieces = hash_pieces(extents_of(infos), [&](const Extent& extent, auto) {
    return tensors[extent.tensor].bytes.subspan(extent.begin, extent.end - extent.begin);
  });
  return hash_all(facts, infos, pieces);
}

std::string write_sealed(const std::filesystem::path& path, const SealedFormat& format,
                         std::span<const TensorSource> tensors, Metadata facts) {
  const std::string hash = sealed_hash(format, tensors, facts);
  facts[kFormatFact] = format.name;
  facts[kContentHashFact] = hash;
  write_safetensors(path, tensors, facts);
  return hash;
}

SealedFile SealedFile::open(const std::filesystem::path& path, const SealedFormat& format) {
  SealedFile file = [&] {
    try {
      return SealedFile(SafetensorsReader::open(path));
    } catch (const CheckpointError& error) {
      throw CheckpointError(problem_of(error));
    }
  }();
  const std::string& found = file.fact(kFormatFact);
  if (found != format.name)
    throw CheckpointError(cat(path.string(), ": expected format ", format.name, ", got '", printable(found), "'"));
  file.content_hash_ = file.fact(kContentHashFact);
  return file;
}

const std::string& SealedFile::fact(const std::string& name) const {
  const auto found = facts().find(name);
  if (found == facts().end())
    throw CheckpointError(cat(path().string(), ": expected '", name, "' in its metadata, got none"));
  return found->second;
}

void SealedFile::read(const std::function<void(const Piece&)>& take) const {
  const std::vector<TensorInfo>& all = tensors();
  std::vector<std::string> pieces;
  try {
    pieces = hash_pieces(extents_of(all), [&](const Extent& extent, std::span<std::byte> buffer) {
      const std::span<std::byte> bytes = buffer.first(extent.end - extent.begin);
      reader_.file().read(all[extent.tensor].begin + extent.begin, bytes);
      take({extent.tensor, extent.begin, bytes});
      return std::span<const std::byte>(bytes);
    });
  } catch (const CheckpointError& error) {
    throw CheckpointError(problem_of(error));
  }
  if (hash_all(facts(), all, pieces) != content_hash_)
    throw CheckpointError(cat(path().string(), ": its content has not the hash that it was saved with: it is damaged"));
}

std::string hash_of_bytes(const MappedFile& file) {
  TensorInfo whole;
  whole.end = file.bytes().size();
  const auto pieces = hash_pieces(extents_of(std::span(&whole, 1)), [&](const Extent& extent, auto buffer) {
    const std::span<std::byte> bytes = buffer.first(extent.end - extent.begin);
    file.read(extent.begin, bytes);
    return std::span<const std::byte>(bytes);
  });
  return hash_all({}, {}, pieces);
}

}  // namespace lancet
