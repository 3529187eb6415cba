// Second moments: C += X^T X, the f32 products of a chunk of rows folded into an f64 sum. A Gram matrix is symmetric:
// only the panels on and below its diagonal are computed (a SYRK made of matrix products, since the torch wheel
// shows no syrk), and mirrored once at the end.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// How rows of 16 bits are multiplied. Others are in their own type either way.
enum class GramProducts {
  kWidened,     ///< products in f32, a row times its count
  kSixteenBits  ///< products of 16 bits, into f32 sums: the matrix units of GPUs. A count times a row is not exact in
                ///< 16 bits: what a row counts beyond one goes through an f32 product of those rows alone
};

/// What is fastest there: kSixteenBits on GPUs, else kWidened.
GramProducts gram_products(at::Device device);

/// Most bytes that GramAccumulator::add() takes beside rows and sum.
struct GramScratch {
  int64_t factors = 0;  ///< bytes of the rows of one product, widened and counted
  int64_t panel = 0;    ///< bytes of one panel of products
};
/// Counts them for `rows` rows of `size` numbers of `dtype`. On GPUs rows of 16 bits are not widened, but for those
/// that count more than once: it is at most as much.
GramScratch gram_scratch_bytes(int64_t size, int64_t rows, at::ScalarType dtype);

/// How often each row of a chunk occurs. Goes to each device once, when it is first asked for there: for one thread.
class RowCounts {
 public:
  /// Every row once.
  RowCounts() = default;
  /// counts [N], integers, on the host; undefined: every row once.
  explicit RowCounts(Tensor host_counts_N);

  /// Returns the sum of the counts of `rows` rows.
  int64_t total(int64_t rows) const;
  /// [N] on the device; undefined: every row once.
  Tensor on(at::Device device);

  /// Rows that occur more than once, among rows begin..end-1.
  struct Repeated {
    Tensor places_R;   ///< int64: which rows
    Tensor surplus_R;  ///< f32: how often beyond once
  };
  /// Returns the repeated rows on the device; undefined tensors where there are none.
  Repeated repeated(int64_t begin, int64_t end, at::Device device);

 private:
  Tensor host_counts_N_;
  std::vector<int64_t> places_;  ///< rows that are repeated
  std::vector<std::pair<at::Device, Tensor>> counts_;
  std::vector<std::pair<at::Device, Repeated>> repeated_;
};

class GramAccumulator {
 public:
  /// Rows, their products and the sum lie on `device`.
  GramAccumulator(int64_t size, at::Device device) : GramAccumulator(size, device, device) {}
  /// Rows and their products lie on `device`, the sum on `sum_device`, where the products of a chunk go panel by panel.
  GramAccumulator(int64_t size, at::Device device, at::Device sum_device)
      : GramAccumulator(size, device, gram_products(device), sum_device) {}
  GramAccumulator(int64_t size, at::Device device, GramProducts products)
      : GramAccumulator(size, device, products, device) {}
  GramAccumulator(int64_t size, at::Device device, GramProducts products, at::Device sum_device);

  /// rows [N, F] on the accumulator's device, any floating type; sums of products in f32 (f64 rows: in f64).
  /// Row i stands for as many equal rows as `counts` says.
  /// Throws: PlacementError for rows elsewhere.
  void add(const Tensor& rows_NF, RowCounts& counts);
  void add(const Tensor& rows_NF);

  /// The sum so far, [F, F] f64: whole where it is computed, undefined numbers elsewhere. For saving only.
  const Tensor& panels() const { return sum_FF_; }
  int64_t rows() const { return rows_; }
  /// Goes on from what `panels` and `rows` said earlier.
  /// Throws: std::logic_error for another shape or type.
  void restore(const Tensor& panels_FF, int64_t rows);

  /// Collective: the sum over all ranks' rows, on every rank.
  void sum_over(Communicator& communicator);

  /// Mean of x x^T over all rows, [F, F] f64, exactly symmetric, in the sum's own memory: it is used up.
  Tensor take_mean() &&;

 private:
  /// Adds left^T right and, of rows that count more than once, what they count beyond that.
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

/// Copies what is below the diagonals of matrices [N, N] or [E, N, N] to above them, a panel of columns at a time.
void mirror_lower(const Tensor& matrices);

// Cholesky factors of matrices so large that a second one of their size must not exist.

/// Lower factor of a symmetric matrix, or of each of several [E, W, W], in the matrix's own memory; undefined when one
/// is not positive definite.
Tensor cholesky_in_place(Tensor matrix);

}  // namespace lancet
