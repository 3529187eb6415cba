// Projection matrices that the public code of AlphaEdit (and of EasyEdit) computed: `null_space_project.pt`, one tensor
// [layers, n, n] f32 from torch.save. For each edited layer, ascending, it holds P = U U^T, where U is a basis of the
// null space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "lancet/checkpoint/saved_tensor.h"
#include "lancet/models/model_config.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/kept_matrices.h"
#include "lancet/statistics/null_space.h"

namespace lancet {

class ImportedNullSpaces {
 public:
  /// `layers`: ascending, one matrix each. `config`: the model's. Reads no file: only root must have it.
  ImportedNullSpaces(std::filesystem::path file, std::span<const int64_t> layers, const ModelConfig& config);

  /// Reads the whole file to check its CRC-32. Throws: CheckpointError when it is damaged, is not a tensor of
  /// torch.save, or does not have these layers and sizes.
  void check() const;

  /// Sets the owner that keeps loaded matrices from now on. Without it every load reads the file.
  void keep_in(std::shared_ptr<KeptMatrices> kept) { kept_ = std::move(kept); }

  /// Loads P itself, f64, on the layer's solve device. Do not write to it. Throws: CheckpointError as check() does, and
  /// when P is not an orthogonal projection: not finite, not symmetric, P P unequal to P, or a rank of 0 or n.
  NullSpace load(int64_t layer, const Placement& placement) const;

  const std::filesystem::path& file() const { return file_; }
  /// Returns hash_of_bytes() of the file.
  const std::string& file_hash() const;

 private:
  SavedTensor open() const;
  Tensor read(int64_t layer, at::Device device) const;

  std::filesystem::path file_;
  std::map<int64_t, int64_t> places_;  // layer -> index in the file
  int64_t size_;
  std::shared_ptr<KeptMatrices> kept_;
  mutable std::string hash_;
};

}  // namespace lancet
