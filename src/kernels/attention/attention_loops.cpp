#include "attention_loops.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "lane_vectors.h"

namespace lancet {
namespace {

/// Vectors in the type of the arithmetic: pointers to the originals if they have this type, else copies.
template <typename T>
class WideVectors {
 public:
  using W = Wide<T>;

  void clear() {
    vectors_.clear();
    used_ = 0;
  }
  /// Makes room for n vectors, so that no later add() moves them.
  void reserve(int64_t n, int64_t dim) {
    if (copies() && room_.size() < static_cast<size_t>(n * dim)) room_.resize(static_cast<size_t>(n * dim));
  }
  void add(const T* x, int64_t dim) {
    if constexpr (!copies()) {
      vectors_.push_back(x);
    } else {
      W* to = room_.data() + used_;
#pragma omp simd
      for (int64_t c = 0; c < dim; ++c) to[c] = wide(x[c]);
      vectors_.push_back(to);
      used_ += dim;
    }
  }
  Vectors<W> from(int64_t i) const { return vectors_.data() + i; }

 private:
  static constexpr bool copies() { return !std::is_same_v<T, W>; }

  std::vector<const W*> vectors_;
  std::vector<W> room_;
  int64_t used_ = 0;
};

/// Some of the query vectors for one row and head of keys, and the range of keys that at least one of them may attend
/// to.
struct Tile {
  int64_t begin, n;            ///< query vectors: query q of the group's head g has the index q * group + g
  int64_t key_begin, key_end;  ///< indices count the earlier tokens first, then the own ones
};

/// The work for one row and head of keys: pointers to its vectors, and buffers that are reused for the next pair.
template <typename T>
class HeadWork {
 public:
  using W = Wide<T>;

  HeadWork(const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in)
      : shape_(shape), rows_(rows), in_(in) {
    columns_.resize(static_cast<size_t>(kLanes * shape.dim));
  }

  void begin(int64_t pair) {
    row_ = pair / shape_.kv_heads;
    head_ = pair % shape_.kv_heads;
    n_earlier_ = rows_.n_earlier(row_);
    n_keys_ = rows_.n_keys(row_);
    find_vectors(in_.pool_key, in_.key, keys_);
    find_vectors(in_.pool_value, in_.value, values_);
    find_places();
    find_queries(in_.query, queries_);
  }

  int64_t n_vectors() const { return static_cast<int64_t>(places_.size()); }
  int64_t weights_begin(const int64_t* weight_bounds) const {
    return weight_bounds[row_] + head_ * attention_weights_of(shape_, rows_, row_);
  }

  template <int64_t kWidth>
  void forward(Tile tile, W* weights, T* out) {
    to_columns<kWidth>(queries_.from(tile.begin), tile.n, shape_.dim, columns_.data());
    scores<kWidth>(tile, weights);
    softmax<kWidth>(tile, weights);
    mixed_.assign(static_cast<size_t>(kWidth * shape_.dim), W(0));
    mix(MixWeights<W>{weights + tile.key_begin * kWidth, kWidth, 1}, values_.from(tile.key_begin), n_keys(tile),
        mixed_.data(), tile.n, shape_.dim);
    store_queries(tile, out);
  }

  void begin_backward(const T* grad_out) {
    find_queries(grad_out, grads_);
    const auto size = static_cast<size_t>(n_own() * shape_.dim);
    grad_keys_.assign(size, W(0));
    grad_values_.assign(size, W(0));
  }

  /// Computes, from scores = scale q k and o = sum w v: d v = w d o, d scores = w (d w - sum w d w) with d w = d o v.
  template <int64_t kWidth>
  void backward(Tile tile, const W* weights, T* grad_query) {
    const int64_t n = n_keys(tile), first = tile.key_begin * kWidth;
    grad_scores_.resize(static_cast<size_t>(n_keys_ * kWidth));
    W* grad = grad_scores_.data();
    to_columns<kWidth>(grads_.from(tile.begin), tile.n, shape_.dim, columns_.data());
    products(Lanes<kWidth>{}, values_.from(tile.key_begin), n, columns_.data(), shape_.dim, grad + first);
    through_softmax<kWidth>(weights + first, n, grad + first);
    if (shape_.cap > 0) through_cap<kWidth>(tile, grad);
    mixed_.assign(static_cast<size_t>(kWidth * shape_.dim), W(0));
    mix(MixWeights<W>{grad + first, kWidth, 1}, keys_.from(tile.key_begin), n, mixed_.data(), tile.n, shape_.dim);
    store_queries(tile, grad_query);
    const int64_t own = std::max(tile.key_begin, n_earlier_), at = (own - n_earlier_) * shape_.dim;
    mix(MixWeights<W>{grad + own * kWidth, 1, kWidth}, queries_.from(tile.begin), tile.n, grad_keys_.data() + at,
        tile.key_end - own, shape_.dim);
    mix(MixWeights<W>{weights + own * kWidth, 1, kWidth}, grads_.from(tile.begin), tile.n, grad_values_.data() + at,
        tile.key_end - own, shape_.dim);
  }

  void end_backward(AttentionGradients<T> gradients) const {
    for (int64_t i = 0; i < n_own(); ++i) {
      const int64_t at = ((rows_.token_bounds[row_] + i) * shape_.kv_heads + head_) * shape_.dim;
      store(grad_keys_.data() + i * shape_.dim, gradients.key + at);
      store(grad_values_.data() + i * shape_.dim, gradients.value + at);
    }
  }

  /// Returns the tile that begins with query vector `begin`.
  Tile tile(int64_t begin) const {
    const int64_t n_left = n_vectors() - begin, n = std::min(lanes_of(n_left), n_left);
    if (rows_.mask != nullptr) return {begin, n, 0, n_keys_};
    return {begin, n, first_seen(begin / shape_.group()), last_seen((begin + n - 1) / shape_.group()) + 1};
  }

 private:
  static int64_t n_keys(const Tile& tile) { return tile.key_end - tile.key_begin; }
  int64_t n_own() const { return n_keys_ - n_earlier_; }

  int64_t last_seen(int64_t query) const { return n_earlier_ + rows_.query_places[rows_.query_bounds[row_] + query]; }
  int64_t first_seen(int64_t query) const {
    return rows_.window > 0 ? std::max<int64_t>(0, last_seen(query) + 1 - rows_.window) : 0;
  }

  void find_vectors(const T* pool, const T* own, WideVectors<T>& vectors) const {
    const int64_t dim = shape_.dim;
    vectors.clear();
    vectors.reserve(n_keys_, dim);
    const int64_t base = row_ * in_.row_stride + head_ * in_.head_stride;
    const int64_t* places = rows_.earlier_places;
    if (places != nullptr) places += rows_.earlier_bounds[row_];
    for (int64_t i = 0; i < n_earlier_; ++i) vectors.add(pool + base + (places == nullptr ? i : places[i]) * dim, dim);
    for (int64_t token = rows_.token_bounds[row_]; token < rows_.token_bounds[row_ + 1]; ++token)
      vectors.add(own + (token * shape_.kv_heads + head_) * dim, dim);
  }

  /// Finds the offsets of the query vectors in [M, H, C].
  void find_places() {
    places_.clear();
    for (int64_t query = rows_.query_bounds[row_]; query < rows_.query_bounds[row_ + 1]; ++query)
      for (int64_t i = 0; i < shape_.group(); ++i)
        places_.push_back((query * shape_.heads + head_ * shape_.group() + i) * shape_.dim);
  }

  void find_queries(const T* all, WideVectors<T>& vectors) const {
    vectors.clear();
    vectors.reserve(n_vectors(), shape_.dim);
    for (const int64_t place : places_) vectors.add(all + place, shape_.dim);
  }

  void store(const W* from, T* to) const {
#pragma omp simd
    for (int64_t c = 0; c < shape_.dim; ++c) to[c] = narrow<T>(from[c]);
  }

  void store_queries(const Tile& tile, T* to) const {
    for (int64_t i = 0; i < tile.n; ++i)
      store(mixed_.data() + i * shape_.dim, to + places_[static_cast<size_t>(tile.begin + i)]);
  }

  /// Computes the scores [keys][kWidth] of the columns.
  template <int64_t kWidth>
  void scores(const Tile& tile, W* to) const {
    to += tile.key_begin * kWidth;
    products(Lanes<kWidth>{}, keys_.from(tile.key_begin), n_keys(tile), columns_.data(), shape_.dim, to);
    const auto scale = static_cast<W>(shape_.scale), cap = static_cast<W>(shape_.cap);
    const int64_t size = n_keys(tile) * kWidth;
    if (cap > 0) {
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) to[i] = capped_score(scale * to[i], cap);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) to[i] *= scale;
    }
  }

  /// Gives a score of minus infinity to keys that a query vector may not attend to.
  template <int64_t kWidth>
  void hide(const Tile& tile, W* scores) const {
    constexpr W kHidden = -std::numeric_limits<W>::infinity();
    for (int64_t lane = 0; lane < tile.n; ++lane) {
      const int64_t query = (tile.begin + lane) / shape_.group();
      if (rows_.mask != nullptr) {
        const bool* seen = rows_.mask + (rows_.query_bounds[row_] + query) * n_keys_;
        for (int64_t s = tile.key_begin; s < tile.key_end; ++s)
          if (!seen[s]) scores[s * kWidth + lane] = kHidden;
      } else {
        for (int64_t s = tile.key_begin; s < first_seen(query); ++s) scores[s * kWidth + lane] = kHidden;
        for (int64_t s = last_seen(query) + 1; s < tile.key_end; ++s) scores[s * kWidth + lane] = kHidden;
      }
    }
  }

  /// Returns what the heads' sinks add to softmax's sums.
  template <int64_t kWidth>
  void begin_with_sinks(const Tile& tile, W* most, W* sum) const {
    if (in_.sinks == nullptr) return;
    for (int64_t lane = 0; lane < tile.n; ++lane) {
      const W sink = wide(in_.sinks[head_ * shape_.group() + (tile.begin + lane) % shape_.group()]);
      most[lane] = std::max(most[lane], sink);
      sum[lane] = exponential(sink - most[lane]);
    }
  }

  template <int64_t kWidth>
  void softmax(const Tile& tile, W* scores) const {
    hide<kWidth>(tile, scores);
    W* x = scores + tile.key_begin * kWidth;
    const int64_t n = n_keys(tile);
    W most[kWidth], sum[kWidth] = {};
    greatest<kWidth>(x, n, most);
    begin_with_sinks<kWidth>(tile, most, sum);
    for (int64_t s = 0; s < n; ++s)
#pragma omp simd
      for (int64_t lane = 0; lane < kWidth; ++lane) {
        const W weight = exponential(x[s * kWidth + lane] - most[lane]);
        x[s * kWidth + lane] = weight;
        sum[lane] += weight;
      }
    for (int64_t lane = 0; lane < kWidth; ++lane) sum[lane] = 1 / sum[lane];
    for (int64_t s = 0; s < n; ++s)
#pragma omp simd
      for (int64_t lane = 0; lane < kWidth; ++lane) x[s * kWidth + lane] *= sum[lane];
  }

  /// Turns the gradients of n keys' weights into those of the products q k.
  template <int64_t kWidth>
  void through_softmax(const W* weights, int64_t n, W* grad) const {
    W mean[kWidth] = {};
    for (int64_t s = 0; s < n; ++s)
#pragma omp simd
      for (int64_t lane = 0; lane < kWidth; ++lane) mean[lane] += weights[s * kWidth + lane] * grad[s * kWidth + lane];
    const auto scale = static_cast<W>(shape_.scale);
    for (int64_t s = 0; s < n; ++s)
#pragma omp simd
      for (int64_t lane = 0; lane < kWidth; ++lane)
        grad[s * kWidth + lane] =
            product_gradient(weights[s * kWidth + lane], grad[s * kWidth + lane], mean[lane], scale);
  }

  /// Multiplies the gradients by the slope of the cap, which it computes from the scores again.
  template <int64_t kWidth>
  void through_cap(const Tile& tile, W* grad) {
    capped_.resize(static_cast<size_t>(n_keys_ * kWidth));
    to_columns<kWidth>(queries_.from(tile.begin), tile.n, shape_.dim, columns_.data());
    scores<kWidth>(tile, capped_.data());
    const auto cap = static_cast<W>(shape_.cap);
#pragma omp simd
    for (int64_t i = tile.key_begin * kWidth; i < tile.key_end * kWidth; ++i)
      grad[i] *= cap_slope(capped_[static_cast<size_t>(i)], cap);
  }

  const AttentionShape& shape_;
  const AttentionRows& rows_;
  const AttentionInput<T>& in_;
  int64_t row_ = 0, head_ = 0, n_earlier_ = 0, n_keys_ = 0;
  std::vector<int64_t> places_;  ///< offsets of the query vectors in [M, H, C]
  WideVectors<T> keys_, values_, queries_, grads_;
  std::vector<W> columns_, mixed_, grad_scores_, capped_, grad_keys_, grad_values_;
};

/// Calls run(tile, integral constant of its lanes, offset of its weights) for each tile.
template <typename T, typename Run>
inline void for_tiles(const HeadWork<T>& work, int64_t n_keys, int64_t weights_begin, const Run& run) {
  for (int64_t begin = 0; begin < work.n_vectors();) {
    const Tile tile = work.tile(begin);
    const int64_t lanes = lanes_of(work.n_vectors() - begin);
    if (lanes == kLanes)
      run(tile, Lanes<kLanes>{}, weights_begin);
    else if (lanes == kFewLanes)
      run(tile, Lanes<kFewLanes>{}, weights_begin);
    else
      run(tile, Lanes<1>{}, weights_begin);
    weights_begin += lanes * n_keys;
    begin += tile.n;
  }
}

template <typename T>
inline void forward_pairs(const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in, T* out,
                          Wide<T>* weights, const int64_t* weight_bounds, RowRange range) {
  HeadWork<T> work(shape, rows, in);
  for (int64_t pair = range.begin; pair < range.end; ++pair) {
    work.begin(pair);
    for_tiles(
        work, rows.n_keys(pair / shape.kv_heads), work.weights_begin(weight_bounds),
        [&](const Tile& tile, auto lanes, int64_t at) { work.template forward<lanes.value>(tile, weights + at, out); });
  }
}

template <typename T>
inline void backward_pairs(const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in,
                           const Wide<T>* weights, const int64_t* weight_bounds, const T* grad_out,
                           AttentionGradients<T> gradients, RowRange range) {
  HeadWork<T> work(shape, rows, in);
  for (int64_t pair = range.begin; pair < range.end; ++pair) {
    work.begin(pair);
    work.begin_backward(grad_out);
    for_tiles(work, rows.n_keys(pair / shape.kv_heads), work.weights_begin(weight_bounds),
              [&](const Tile& tile, auto lanes, int64_t at) {
                work.template backward<lanes.value>(tile, weights + at, gradients.query);
              });
    work.end_backward(gradients);
  }
}

}  // namespace

int64_t attention_weights_of(const AttentionShape& shape, const AttentionRows& rows, int64_t row) {
  const int64_t vectors = rows.n_queries(row) * shape.group(), rest = vectors % kLanes;
  return rows.n_keys(row) * (vectors - rest + (rest > kTooFew ? lanes_of(rest) : rest));
}

#define LANCET_ATTENTION_LOOPS(T)                                                                                   \
  LANCET_FUSED_CLONES(attention_forward, forward_pairs,                                                             \
                      (const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in, T* out, \
                       Wide<T>* weights, const int64_t* weight_bounds, RowRange range),                             \
                      (shape, rows, in, out, weights, weight_bounds, range))                                        \
  LANCET_FUSED_CLONES(                                                                                              \
      attention_backward, backward_pairs,                                                                           \
      (const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in, const Wide<T>* weights, \
       const int64_t* weight_bounds, const T* grad_out, AttentionGradients<T> gradients, RowRange range),           \
      (shape, rows, in, weights, weight_bounds, grad_out, gradients, range))
LANCET_ATTENTION_LOOPS(float)
LANCET_ATTENTION_LOOPS(double)
LANCET_ATTENTION_LOOPS(c10::BFloat16)

}  // namespace lancet
