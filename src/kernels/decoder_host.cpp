// Runs the loops of decoder_loops.h over tensors, on several threads.
#include <torch/types.h>

#include <algorithm>

#include "decoder_loops.h"
#include "decoder_passes.h"
#include "host_dispatch.h"

namespace lancet::on_host {
namespace {

/// Calls work(offset in gates and ups, offset in results, range of numbers): one range for all rows if they are
/// contiguous, else one for each row.
template <typename Work>
void over_gates(const GateRows& rows, const Work& work) {
  const int64_t count = rows.gate.size(0), width = rows.gate.size(1), stride = rows.gate.stride(0);
  if (count <= 1 || stride == width) return parallel_rows(count * width, 1, [&](RowRange range) { work(0, 0, range); });
  parallel_rows(count, width, [&](RowRange range) {
    for (int64_t row = range.begin; row < range.end; ++row) work(row * stride, row * width, {0, width});
  });
}

/// How many numbers of a row are its queries, and how many its keys; it has as many values as keys.
struct HeadNumbers {
  int64_t query;
  int64_t key;
  int64_t dim;
  int64_t all() const { return query + 2 * key; }
};

HeadNumbers numbers_of(const SplitHeads& heads) {
  const int64_t dim = heads.query_BTHC.size(3);
  return {heads.query_BTHC.size(2) * dim, heads.key_BTKC.size(2) * dim, dim};
}

/// The row's vectors of the rotary tables; null: no rotation.
template <typename T>
struct RowTables {
  const T* cos = nullptr;
  const T* sin = nullptr;

  RowTables(const RotaryTables& tables, int64_t row, int64_t dim) {
    if (!tables.cos_BT1C.defined()) return;
    cos = tables.cos_BT1C.const_data_ptr<T>() + row * dim;
    sin = tables.sin_BT1C.const_data_ptr<T>() + row * dim;
  }
};

/// Copies a row's numbers from `x` to `y`, and rotates them.
template <typename T>
void turn_row(const T* x, T* y, const RowTables<T>& tables, int64_t numbers, int64_t dim, Direction turn) {
  if (tables.cos == nullptr) {
    std::copy_n(x, numbers, y);
    return;
  }
  const RotaryRows<T> row{x, tables.cos, tables.sin, numbers / dim, dim};
  if (turn == Direction::kForward)
    rotate_forward(row, y, {0, 1});
  else
    rotate_backward(row, y, {0, 1});
}

}  // namespace

Tensor norm(const Tensor& x, const Tensor& weight, double eps) {
  Tensor y = at::empty_like(x);
  const int64_t width = x.size(-1);
  for_host_type(x, [&]<typename T>(T) {
    const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width, eps};
    T* out = y.mutable_data_ptr<T>();
    parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_forward(rows, out, range); });
  });
  return y;
}

Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, double eps) {
  Tensor grad_x = at::empty_like(x);
  const int64_t width = x.size(-1);
  for_host_type(x, [&]<typename T>(T) {
    const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width, eps};
    const T* gy = grad_y.const_data_ptr<T>();
    T* gx = grad_x.mutable_data_ptr<T>();
    parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_backward(rows, gy, gx, range); });
  });
  return grad_x;
}

Tensor gate(const GateRows& rows) {
  Tensor y = at::empty(rows.gate.sizes(), rows.gate.options());
  for_host_type(y, [&]<typename T>(T) {
    const GatedValues<T> all{rows.gate.const_data_ptr<T>(), rows.up.const_data_ptr<T>()};
    T* out = y.mutable_data_ptr<T>();
    over_gates(rows, [&](int64_t begin, int64_t of_y, RowRange range) {
      silu_times_forward({all.gate + begin, all.up + begin}, out + of_y, range);
    });
  });
  return y;
}

void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients) {
  for_host_type(grad_y, [&]<typename T>(T) {
    const GatedValues<T> all{rows.gate.const_data_ptr<T>(), rows.up.const_data_ptr<T>()};
    const T* gy = grad_y.const_data_ptr<T>();
    T* gg = gradients.gate.mutable_data_ptr<T>();
    T* gu = gradients.up.mutable_data_ptr<T>();
    over_gates(rows, [&](int64_t begin, int64_t of_y, RowRange range) {
      silu_times_backward({all.gate + begin, all.up + begin}, gy + of_y, gg + begin, gu + begin, range);
    });
  });
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn) {
  Tensor y = at::empty_like(x);
  const int64_t heads = x.size(2), dim = x.size(3);
  for_host_type(x, [&]<typename T>(T) {
    const RotaryRows<T> rows{x.const_data_ptr<T>(), cos.const_data_ptr<T>(), sin.const_data_ptr<T>(), heads, dim};
    T* out = y.mutable_data_ptr<T>();
    parallel_rows(x.size(0) * x.size(1), heads * dim, [&](RowRange range) {
      if (turn == Direction::kForward)
        rotate_forward(rows, out, range);
      else
        rotate_backward(rows, out, range);
    });
  });
  return y;
}

void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads) {
  const HeadNumbers n = numbers_of(heads);
  for_host_type(joined, [&]<typename T>(T) {
    const T* from = joined.const_data_ptr<T>();
    T* query = heads.query_BTHC.mutable_data_ptr<T>();
    T* key = heads.key_BTKC.mutable_data_ptr<T>();
    T* value = heads.value_BTKC.mutable_data_ptr<T>();
    parallel_rows(joined.numel() / n.all(), n.all(), [&](RowRange range) {
      for (int64_t row = range.begin; row < range.end; ++row) {
        const RowTables<T> own(tables, row, n.dim);
        const T* x = from + row * n.all();
        turn_row(x, query + row * n.query, own, n.query, n.dim, Direction::kForward);
        turn_row(x + n.query, key + row * n.key, own, n.key, n.dim, Direction::kForward);
        std::copy_n(x + n.query + n.key, n.key, value + row * n.key);
      }
    });
  });
}

void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined) {
  const HeadNumbers n = numbers_of(heads);
  for_host_type(joined, [&]<typename T>(T) {
    const T* query = heads.query_BTHC.const_data_ptr<T>();
    const T* key = heads.key_BTKC.const_data_ptr<T>();
    const T* value = heads.value_BTKC.const_data_ptr<T>();
    T* to = joined.mutable_data_ptr<T>();
    parallel_rows(joined.numel() / n.all(), n.all(), [&](RowRange range) {
      for (int64_t row = range.begin; row < range.end; ++row) {
        const RowTables<T> own(tables, row, n.dim);
        T* x = to + row * n.all();
        turn_row(query + row * n.query, x, own, n.query, n.dim, Direction::kBack);
        turn_row(key + row * n.key, x + n.query, own, n.key, n.dim, Direction::kBack);
        std::copy_n(value + row * n.key, n.key, x + n.query + n.key);
      }
    });
  });
}

}  // namespace lancet::on_host
