// Vectors of at most 256 numbers in a warp: its lanes form groups, each of which takes a vector at a time.
#pragma once

#include "threads.h"

namespace lancet {

/// A lane's part of vectors of `dim` numbers, at most 256: a pack of neighbours, and so again after the group's others.
/// `kHasPacks`: all vectors may be read and written by packs.
template <typename T, bool kHasPacks>
struct VectorLanes {
  static constexpr int kPack = Pack<T>::kSize, kNumbers = 8, kPacks = kNumbers / kPack;
  typedef Wide<T> Part[kNumbers];

  int dim;
  int size;   ///< lanes of a group: a power of two
  int lane;   ///< place in its group
  int group;  ///< its group's place in the warp

  __device__ inline int groups() const { return kWarp / size; }

  /// Zero beyond the vector.
  __device__ inline void load(const T* x, Part& to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = first(p);
      if constexpr (kHasPacks) {
        widen(begin < dim ? Pack<T>::from(x + begin) : Pack<T>(), to, p);
      } else {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] =
            begin + i < dim ? wide(x[begin + i]) : Wide<T>(0);
      }
    }
  }

  /// Loads in fewer instructions: beyond the vector packs are the first one again, for products with zeros there.
  __device__ inline void load_repeated(const T* x, Part& to) const {
    if constexpr (!kHasPacks) return load(x, to);
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) widen(Pack<T>::from(x + (first(p) < dim ? first(p) : 0)), to, p);
  }

  __device__ inline void store(const Part& x, T* to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = first(p);
      if constexpr (!kHasPacks) {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) if (begin + i < dim) to[begin + i] = narrow<T>(x[p * kPack + i]);
      } else if (begin < dim) {
        Pack<T> pack;
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) pack.numbers[i] = narrow<T>(x[p * kPack + i]);
        pack.to(to + begin);
      }
    }
  }

  /// The lane's part of the product of two vectors.
  __device__ inline Wide<T> part_of_product(const Part& a, const Part& b) const {
    Wide<T> sum = 0;
    LANCET_UNROLL for (int i = 0; i < kNumbers; ++i) sum += a[i] * b[i];
    return sum;
  }

  /// Adds up what a group's lanes have; they all get the sums. Several at once do not wait for each other, and there is
  /// no branch, of which a compiler would think that not all lanes take it together.
  template <int kCount>
  __device__ inline void over_lanes(Wide<T> (&x)[kCount]) const {
    LANCET_UNROLL for (int other = kWarp / 2; other > 0; other /= 2) {
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
        const Wide<T> theirs = from_lane(x[i], other);
        x[i] += other < size ? theirs : Wide<T>(0);
      }
    }
  }

  /// Adds up what the groups have; all lanes get the sums.
  template <int kCount>
  __device__ inline void over_groups(Wide<T> (&x)[kCount]) const {
    for (int other = size; other < kWarp; other *= 2)
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) x[i] += from_lane(x[i], other);
  }
  __device__ inline Wide<T> over_groups(Wide<T> x) const {
    Wide<T> sum[] = {x};
    over_groups(sum);
    return sum[0];
  }

 private:
  __device__ inline int first(int pack) const { return (pack * size + lane) * kPack; }
  static __device__ inline void widen(const Pack<T>& pack, Part& to, int p) {
    LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] = wide(pack.numbers[i]);
  }
};

template <typename W>
__device__ inline void add_scaled(W (&to)[8], W scale, const W (&x)[8]) {
  LANCET_UNROLL for (int i = 0; i < 8; ++i) to[i] += scale * x[i];
}

template <typename T, bool kHasPacks>
__device__ inline VectorLanes<T, kHasPacks> vector_lanes(int dim) {
  int size = 1;
  while (size < kWarp && size * Pack<T>::kSize < dim) size *= 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return {dim, size, lane % size, lane / size};
}

/// How many vectors of each kind a group takes at once: their loads and sums do not wait for each other.
template <typename T, bool kHasPacks>
__device__ constexpr int at_once() {
  return kHasPacks && sizeof(Wide<T>) == sizeof(float)
             ? 2
             : 1;  // of f64, and of addresses of single numbers, one fills the registers
}

/// A warp's place among all of the launch.
__device__ inline Index first_item() {
  return first_row() * (next_numbers() / kWarp) + static_cast<Index>(threadIdx.x) / kWarp;
}
__device__ inline Index next_items() { return next_rows() * (next_numbers() / kWarp); }

}  // namespace lancet
