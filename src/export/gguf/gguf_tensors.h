// The tensors of a GGUF file, made of a model folder's weights one after the other.
#pragma once

#include <vector>

#include "lancet/export/gguf_job.h"
#include "lancet/gguf/gguf_layout.h"
#include "own_tensors.h"

namespace lancet {

class GgufTensors {
 public:
  /// Throws: CheckpointError for a weight that the architecture does not have.
  GgufTensors(const ModelFiles& files, const GgufLayout& layout, GgufMatrixType type);

  const GgufType& matrix_type() const { return *matrix_type_; }
  /// Names, types and shapes, in the order of the file.
  const std::vector<GgufNewTensor>& described() const { return described_; }
  /// Returns the bytes of a tensor in turn, in pieces: one per expert. Throws: NumericError for numbers that the type
  /// cannot hold.
  std::vector<Tensor> encoded(size_t tensor) const;

 private:
  /// Tensors of the model that become one of the file.
  struct Source {
    size_t group = 0;
    std::vector<GgufPlaceOf> places;  ///< of the group's tensors
  };

  GgufNewTensor describe(const OwnGroup& group, const std::vector<GgufPlaceOf>& places) const;

  OwnTensors own_;
  const GgufType* matrix_type_;
  std::vector<Source> sources_;
  std::vector<GgufNewTensor> described_;  ///< one for each source
};

}  // namespace lancet
