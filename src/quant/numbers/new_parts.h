// The tensors of a matrix that has none yet: of the right names, types and shapes, and empty.
#pragma once

#include <string>
#include <vector>

#include "lancet/quant/pack.h"

namespace lancet {

class NewParts {
 public:
  /// Takes `weight`, `code` and `name` as pack() does; the weight outlives it. Throws: as refuse(), where no format has
  /// such a matrix.
  NewParts(const Tensor& weight, const MatrixCode& code, const std::string& name);
  /// Has the format add its tensors. Throws: as refuse().
  NewlyPacked finish();

  const MatrixCode& code() const { return packed_.spec.code; }
  int64_t rows() const { return packed_.spec.rows; }
  int64_t columns() const { return packed_.spec.columns; }
  /// How many groups of columns there are, each with scales of its own.
  int64_t groups() const;
  /// [scale rows, groups].
  std::vector<int64_t> scale_shape() const;
  at::Device device() const;

  /// Adds a tensor of zeros; `end`: of its name, after the module's.
  void add(PartRole role, std::string_view end, at::ScalarType type, const std::vector<int64_t>& shape);
  void add(PartRole role, std::string_view end, const Tensor& tensor);
  /// Throws: as refuse(), unless so many numbers of 4 or 8 bits fill words of 32 bits. `what`: "rows".
  void need_words(int64_t size, std::string_view what) const;
  /// Throws: CheckpointError "NAME: expected ..., got ...".
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  const Tensor& weight_;
  NewlyPacked packed_;
};

}  // namespace lancet
