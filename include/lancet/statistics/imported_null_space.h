// Projection matrices that AlphaEdit's public code (and EasyEdit's) computed: `null_space_project.pt`, one tensor
// [layers, n, n] f32 by torch.save, P = U U^T of the null space's basis U for each edited layer, ascending.
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
  /// `layers`: ascending, one matrix each. `config`: the model's. Looks at no file: only root need have
  /// it.
  ImportedNullSpaces(std::filesystem::path file, std::span<const int64_t> layers, const ModelConfig& config);

  /// Reads all of the file, for its CRC-32. Throws: CheckpointError when it is damaged, no tensor of torch.save, or not
  /// one of these layers and sizes.
  void check() const;

  /// Sets where what was read is kept from now on. Without it every load reads the file.
  void keep_in(std::shared_ptr<KeptMatrices> kept) { kept_ = std::move(kept); }

  /// P itself, on the layer's solve device; f64; only to be read. Throws: CheckpointError as check() does, and when P
  /// is no orthogonal projection: not finite, not symmetric, P P other than P, a rank of 0 or n.
  NullSpace load(int64_t layer, const Placement& placement) const;

  const std::filesystem::path& file() const { return file_; }
  /// hash_of_bytes().
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
