#include "lancet/statistics/imported_null_space.h"

#include <torch/types.h>

#include <cmath>

#include "imported_keys.h"
#include "lancet/checkpoint/sealed_file.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// The largest allowed difference between an entry of P and its mirror image, and between P x and P P x, relative to x.
/// P was computed and stored in f32 (6e-8, times sqrt(n) terms). For a matrix that is not a projection the difference
/// is about 1.
constexpr double kTolerance = 1e-3;
/// Mirror images are compared in tiles, because a copy of P would take gigabytes.
constexpr int64_t kMirrorTile = 2048;
constexpr int64_t kProbes = 4;

CheckpointError unusable(const std::filesystem::path& file, std::string_view what) {
  return CheckpointError(cat("statistics.import_null_space: ", file.string(), ": ", what));
}

/// Calls `read`, and puts the file's name in front of its problems.
template <typename Read>
auto for_import(const Read& read) {
  try {
    return read();
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat("statistics.import_null_space: ", error.what()));
  }
}

int64_t rank_of(const Tensor& p_FF) { return std::lround(p_FF.trace().item<double>()); }

void check_symmetric(const Tensor& p_FF, const std::string& where, const std::filesystem::path& file) {
  for (int64_t i = 0; i < p_FF.size(0); i += kMirrorTile)
    for (int64_t j = i; j < p_FF.size(0); j += kMirrorTile) {
      const auto tile = [&](int64_t row, int64_t column) {
        return p_FF.slice(0, row, row + kMirrorTile).slice(1, column, column + kMirrorTile);
      };
      const double largest = (tile(i, j) - tile(j, i).t()).abs().max().item<double>();
      if (!(largest <= kTolerance))  // also refuses NaN
        throw unusable(file, cat(where, ": no projection: entries across the diagonal differ by ", largest,
                                 ": compute it again, or use statistics of text"));
    }
}

void check_projection(const Tensor& p_FF, const std::string& where, const std::filesystem::path& file) {
  check_symmetric(p_FF, where, file);
  const Tensor probes_FX =
      torch::randn({p_FF.size(0), kProbes}, at::detail::createCPUGenerator(0), at::TensorOptions(at::kDouble))
          .to(p_FF.device());
  const Tensor once_FX = torch::matmul(p_FF, probes_FX);
  const double off = ((torch::matmul(p_FF, once_FX) - once_FX).norm() / probes_FX.norm()).item<double>();
  if (!(off <= kTolerance))
    throw unusable(file, cat(where, ": no projection: applied twice it differs by a share of ", off,
                             ": expected P = U U^T of orthonormal U"));
  const int64_t rank = rank_of(p_FF);
  if (rank < 1 || rank >= p_FF.size(0))
    throw unusable(file, cat(where, ": a null space of ", rank, " of ", p_FF.size(0),
                             " dimensions: ", rank < 1 ? "no change would be left" : "nothing would be protected"));
}

}  // namespace

ImportedNullSpaces::ImportedNullSpaces(std::filesystem::path file, std::span<const int64_t> layers,
                                       const ModelConfig& config)
    : file_(std::move(file)), size_(imported_key_size(config, layers, "statistics.import_null_space")) {
  for (const int64_t layer : layers) places_.emplace(layer, static_cast<int64_t>(places_.size()));
}

SavedTensor ImportedNullSpaces::open() const {
  SavedTensor all_LFF = for_import([&] { return SavedTensor::open(file_); });
  const auto count = static_cast<int64_t>(places_.size());
  const std::vector<int64_t> expected{count, size_, size_};
  if (all_LFF.shape() != expected)
    throw unusable(file_, cat("shape ", shape_text(all_LFF.shape()), ", expected ", shape_text(expected), ": the ",
                              count, " edited layers, in ascending order, and config.json's intermediate_size"));
  if (all_LFF.dtype() != DType::kF32 && all_LFF.dtype() != DType::kF64)
    throw unusable(file_, cat("of type ", dtype_name(all_LFF.dtype()), ", expected F32 or F64"));
  return all_LFF;
}

void ImportedNullSpaces::check() const {
  const SavedTensor all_LFF = open();
  for_import([&] { all_LFF.check_bytes(); });
}

Tensor ImportedNullSpaces::read(int64_t layer, at::Device device) const {
  const TensorRead read{open().part(places_.at(layer)), device, at::kDouble};
  Tensor p_FF = read_tensors(std::span(&read, 1), [](int64_t) {}).front();
  check_projection(p_FF, cat("layer ", layer), file_);
  return p_FF;
}

NullSpace ImportedNullSpaces::load(int64_t layer, const Placement& placement) const {
  const torch::NoGradGuard no_grad;
  const at::Device device = placement.solve_device(layer);
  const auto read_there = [&] { return read(layer, device); };
  Tensor p_FF = kept_ ? kept_->matrix({file_, places_.at(layer), device}, read_there) : read_there();
  const int64_t rank = rank_of(p_FF);
  return {std::move(p_FF), NullSpace::Basis::kProjection, rank};
}

const std::string& ImportedNullSpaces::file_hash() const {
  if (hash_.empty()) hash_ = hash_of_bytes(*MappedFile::open(file_));
  return hash_;
}

}  // namespace lancet
