// Edited weights as the tensors of a file. Defined in output_form.cpp.
#pragma once

#include <map>
#include <string>

#include "lancet/deltas/weight_update.h"
#include "lancet/models/model_files.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// Whole tensors in full precision, on the host, by the name they are stored under in a model that has them so.
class EditedTensors {
 public:
  explicit EditedTensors(const ModelFiles& files) : files_(files) {}

  /// Puts an edited weight, as it is written, among them.
  void add(const WeightSpec& spec, const WeightTransaction::Entry& entry);
  /// Puts a packed weight that is not edited among them, unpacked.
  void add_as_it_is(const WeightSpec& spec);

  const std::map<std::string, Tensor>& all() const { return tensors_; }

 private:
  /// [StoredPlace::shape]. What other weights have of it is as it was; of packed experts all have to be added.
  const Tensor& place(const WeightSpec& spec, size_t part, at::ScalarType type);

  const ModelFiles& files_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace lancet
