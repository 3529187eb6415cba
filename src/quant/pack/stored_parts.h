// Scales, zero points and codes between a file's tensors and grids [groups of columns, scale rows].
#pragma once

#include <array>
#include <span>
#include <vector>

#include "scale_rule.h"

namespace lancet {

struct MatrixCodec;

/// Which numbers of a matrix share a scale.
struct ScaleLayout {
  int64_t rows = 0, columns = 0;
  int64_t rows_of_scale = 1;        ///< neighbours; 0: all
  int64_t columns_of_scale = 1;     ///< neighbours
  std::vector<int64_t> order = {};  ///< the group of each column; empty: neighbours are a group
  int64_t flat_block =
      0;  ///< neighbours in the flattened matrix, which do not end with rows, where above 0: one group then

  int64_t groups() const;
  int64_t scale_rows() const;
  /// Groups are of neighbouring columns: a sweep over the columns finds each scale when it comes to them.
  bool is_by_columns() const { return order.empty() && flat_block == 0; }
};

/// A matrix's tensors in a file, by their roles.
class StoredParts {
 public:
  /// Throws: std::logic_error when `parts` are not those of `spec`.
  StoredParts(const PackedSpec& spec, std::span<const Tensor> parts, at::Device device);

  /// Undefined: there is none.
  const Tensor& part(PartRole role) const { return parts_[static_cast<size_t>(role)]; }
  /// Waits where columns may have an order of their own.
  ScaleLayout layout() const;
  /// The file's scales in the type that their bytes mean.
  Tensor scale_numbers() const;
  /// Scales as they are; nested ones as places alone.
  FoundScales scales(const ScaleLayout& layout) const;

  /// Takes `found` in the place of the file's.
  void set_scales(const FoundScales& found);
  void set_nested_scales(const Tensor& scales) { set(PartRole::kNestedScales, scales); }
  /// `codes` [in, out] u8.
  void set_codes(const Tensor& codes);

 private:
  /// Numbers, contiguous, in the type and shape that the file has.
  void set(PartRole role, const Tensor& numbers);

  const PackedSpec& spec_;
  const MatrixCodec& codec_;
  std::array<Tensor, static_cast<size_t>(PartRole::kRecord) + 1> parts_;
};

}  // namespace lancet
