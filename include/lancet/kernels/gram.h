// Second moments: C += X^T X. The f32 products of a chunk of rows are added to an f64 sum. A Gram matrix is symmetric,
// so only the panels on and below the diagonal are computed, and they are mirrored once at the end. This is a SYRK made
// of matrix products, because the torch wheel exposes no syrk.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// How rows of 16-bit numbers are multiplied. Rows of other types are always multiplied in their own type.
enum class GramProducts {
  kWidened,     ///< products in f32; each row is multiplied by its count
  kSixteenBits  ///< 16-bit products with f32 sums, for the matrix units of GPUs. A row times its count is not exact in
                ///< 16 bits, so repeats beyond the first go through an f32 product of the repeated rows alone
};

/// Returns the fastest choice for the device: kSixteenBits on GPUs, else kWidened.
GramProducts gram_products(at::Device device);

/// The most bytes that GramAccumulator::add() needs in addition to the rows and the sum.
struct GramScratch {
  int64_t factors = 0;  ///< bytes of the rows of one product, after they are widened and multiplied by their counts
  int64_t panel = 0;    ///< bytes of one panel of products
};
/// Counts these bytes for `rows` rows of `size` numbers of `dtype`. This is an upper bound on GPUs, where only those
/// 16-bit rows are widened that occur more than once.
GramScratch gram_scratch_bytes(int64_t size, int64_t rows, at::ScalarType dtype);

/// How often each row of a chunk occurs. The counts are copied to each device once, at the first request for that
/// device. Not thread-safe.
class RowCounts {
 public:
  /// Every row occurs once.
  RowCounts() = default;
  /// counts [N]: integers on the host; undefined: every row occurs once.
  explicit RowCounts(Tensor host_counts_N);

  /// Returns the sum of the counts of `rows` rows.
  int64_t total(int64_t rows) const;
  /// Returns the counts [N] on the device; undefined: every row occurs once.
  Tensor on(at::Device device);

  /// The rows among begin..end-1 that occur more than once.
  struct Repeated {
    Tensor places_R;   ///< int64: which rows
    Tensor surplus_R;  ///< f32: the count minus one
  };
  /// Returns the repeated rows, on the device; the tensors are undefined if there are none.
  Repeated repeated(int64_t begin, int64_t end, at::Device device);

 private:
  Tensor host_counts_N_;
  std::vector<int64_t> places_;  ///< indices of the repeated rows
  std::vector<std::pair<at::Device, Tensor>> counts_;
  std::vector<std::pair<at::Device, Repeated>> repeated_;
};

class GramAccumulator {
 public:
  /// Rows, their products and the sum are on `device`.
  GramAccumulator(int64_t size, at::Device device) : GramAccumulator(size, device, device) {}
  /// Rows and their products are on `device`. The sum is on `sum_device`, and the products of a chunk are copied there
  /// panel by panel.
  GramAccumulator(int64_t size, at::Device device, at::Device sum_device)
      : GramAccumulator(size, device, gram_products(device), sum_device) {}
  GramAccumulator(int64_t size, at::Device device, GramProducts products)
      : GramAccumulator(size, device, products, device) {}
  GramAccumulator(int64_t size, at::Device device, GramProducts products, at::Device sum_device);

  /// Adds rows [N, F] of any floating type, on the accumulator's device. Products are summed in f32 (for f64 rows in
  /// f64). Row i counts as `counts` says for it. Throws: PlacementError for rows on another device.
  void add(const Tensor& rows_NF, RowCounts& counts);
  void add(const Tensor& rows_NF);

  /// Returns the sum so far, [F, F] f64. Only the computed panels hold meaningful numbers; the other panels are
  /// undefined. Use it only to save the state.
  const Tensor& panels() const { return sum_FF_; }
  int64_t rows() const { return rows_; }
  /// Continues from the earlier values of panels() and rows(). Throws: std::logic_error for another shape or type.
  void restore(const Tensor& panels_FF, int64_t rows);

  /// Collective. Adds up the sums of all ranks; afterwards every rank has the total.
  void sum_over(Communicator& communicator);

  /// Returns the mean of x x^T over all rows, [F, F] f64, exactly symmetric. It reuses the sum's memory, so the
  /// accumulator is consumed.
  Tensor take_mean() &&;

 private:
  /// The factors of one product: left^T right, plus the product of the surplus of rows that occur more than once.
  struct Factors {
    Tensor left_NF, right_NF;
    Tensor more_left_RF, more_right_RF;  ///< f32; undefined: none
  };
  Factors widened(const Tensor& rows_NF, int64_t begin, RowCounts& counts) const;
  Factors sixteen_bits(const Tensor& rows_NF, int64_t begin, RowCounts& counts) const;
  void fold(const Factors& factors);

  at::Device device_;
  Tensor sum_FF_;
  GramProducts products_;
  int64_t rows_ = 0;
};

/// Copies the numbers below the diagonal to above the diagonal in matrices [N, N] or [E, N, N], one panel of columns at
/// a time.
void mirror_lower(const Tensor& matrices);

// Cholesky factors of matrices that are so large that memory has no room for a second matrix of their size.

/// Computes the lower Cholesky factor of a symmetric matrix, or of each of several [E, W, W], in the matrix's own
/// memory. Returns an undefined tensor when a matrix is not positive definite.
Tensor cholesky_in_place(Tensor matrix);

}  // namespace lancet
