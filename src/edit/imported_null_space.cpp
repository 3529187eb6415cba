#include "lancet/edit/imported_null_space.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/unpickler.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/io/mapped_file.h"

namespace lancet {
namespace {

/// Most that an entry of P may differ from its mirror image, and that P x may differ from P P x, relative to x: P was
/// computed and stored in f32 (6e-8, times sqrt(n) terms); what is no projection is off by about 1.
constexpr double kTolerance = 1e-3;
/// The mirror images are compared in tiles: another copy of P would be gigabytes.
constexpr int64_t kTile = 2048;
constexpr int64_t kProbes = 4;

CheckpointError unusable(const std::filesystem::path& file, std::string_view what) {
  return CheckpointError(cat("statistics.import_null_space: ", file.string(), ": ", what));
}

/// The tensor in a file of torch.save, in the mapped file's pages. The unpickler knows tensors and plain containers: a
/// file cannot make it run code.
Tensor map_saved_tensor(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  caffe2::serialize::PyTorchStreamReader archive(path.string());
  auto [pickle, pickle_size] = archive.getRecord("data.pkl");
  const char* at = static_cast<const char*>(pickle.get());
  const char* end = at + pickle_size;
  const auto read = [&](char* to, size_t size) {
    const size_t count = std::min(size, static_cast<size_t>(end - at));
    std::memcpy(to, at, count);
    at += count;
    return count;
  };
  const auto read_record = [&](const std::string& name) {
    const std::string record = "data/" + name;
    const size_t offset = archive.getRecordOffset(record);
    if (offset + archive.getRecordSize(record) > file->bytes().size()) throw unusable(path, "is cut");
    const auto* bytes = reinterpret_cast<const char*>(file->bytes().data()) + offset;
    auto* keeper = new std::shared_ptr<const MappedFile>(file);
    return at::DataPtr(
        const_cast<char*>(bytes), keeper,
        [](void* owner) { delete static_cast<std::shared_ptr<const MappedFile>*>(owner); }, Placement::host());
  };
  torch::jit::Unpickler unpickler(read, nullptr, nullptr, read_record, Placement::host());
  const c10::IValue value = unpickler.parse_ivalue();
  if (!value.isTensor()) throw unusable(path, cat("holds a ", value.tagKind(), ", expected one tensor"));
  return value.toTensor();
}

void check_symmetric(const Tensor& p_FF, const std::string& where, const std::filesystem::path& file) {
  for (int64_t i = 0; i < p_FF.size(0); i += kTile)
    for (int64_t j = i; j < p_FF.size(0); j += kTile) {
      const auto tile = [&](int64_t row, int64_t column) {
        return p_FF.slice(0, row, row + kTile).slice(1, column, column + kTile);
      };
      const double largest = (tile(i, j) - tile(j, i).t()).abs().max().item<double>();
      if (!(largest <= kTolerance))  // NaN too
        throw unusable(file, cat(where, ": no projection: entries across the diagonal differ by ", largest,
                                 ": compute it again, or use statistics of text"));
    }
}

/// Returns the rank.
int64_t check_projection(const Tensor& p_FF, const std::string& where, const std::filesystem::path& file) {
  check_symmetric(p_FF, where, file);
  const Tensor probes_FX =
      torch::randn({p_FF.size(0), kProbes}, at::detail::createCPUGenerator(0), at::TensorOptions(at::kDouble))
          .to(p_FF.device());
  const Tensor once_FX = torch::matmul(p_FF, probes_FX);
  const double off = ((torch::matmul(p_FF, once_FX) - once_FX).norm() / probes_FX.norm()).item<double>();
  if (!(off <= kTolerance))
    throw unusable(file, cat(where, ": no projection: applied twice it differs by a share of ", off,
                             ": expected P = U U^T of orthonormal U"));
  const int64_t rank = std::lround(p_FF.trace().item<double>());
  if (rank < 1 || rank >= p_FF.size(0))
    throw unusable(file, cat(where, ": a null space of ", rank, " of ", p_FF.size(0),
                             " dimensions: ", rank < 1 ? "no change would be left" : "nothing would be protected"));
  return rank;
}

}  // namespace

ImportedNullSpaces::ImportedNullSpaces(std::filesystem::path file, std::span<const int64_t> layers, int64_t size)
    : file_(std::move(file)), size_(size) {
  for (const int64_t layer : layers) places_.emplace(layer, static_cast<int64_t>(places_.size()));
}

Tensor ImportedNullSpaces::open() const {
  Tensor all_LFF;
  try {
    all_LFF = map_saved_tensor(file_);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw unusable(file_, cat("is no file of torch.save (PyTorch 1.6 or newer): ", error.what_without_backtrace()));
  } catch (const std::exception& error) {  // of a pickle that calls for classes
    throw unusable(file_, cat("holds more than a tensor: ", error.what()));
  }
  const auto count = static_cast<int64_t>(places_.size());
  const std::vector<int64_t> expected{count, size_, size_};
  if (all_LFF.sizes() != expected)
    throw unusable(file_, cat("shape ", shape_text(all_LFF.sizes()), ", expected ", shape_text(expected), ": the ",
                              count, " edited layers, in ascending order, and config.json's intermediate_size"));
  if (all_LFF.scalar_type() != at::kFloat && all_LFF.scalar_type() != at::kDouble)
    throw unusable(file_, cat("of type ", at::toString(all_LFF.scalar_type()), ", expected Float or Double"));
  return all_LFF;
}

void ImportedNullSpaces::check() const { open(); }

NullSpace ImportedNullSpaces::load(int64_t layer, const Placement& placement) const {
  const torch::NoGradGuard no_grad;
  Tensor p_FF = open()[places_.at(layer)].to(placement.solve_device(layer), placement.solve_dtype());
  const int64_t rank = check_projection(p_FF, cat("layer ", layer), file_);
  return {std::move(p_FF), NullSpace::Basis::kProjection, rank};
}

const std::string& ImportedNullSpaces::file_hash() const {
  if (hash_.empty()) hash_ = ContentHash().add(MappedFile::open(file_)->bytes()).hex();
  return hash_;
}

}  // namespace lancet
