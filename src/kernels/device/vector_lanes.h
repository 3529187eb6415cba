// Vectors of at most 256 numbers in a warp: its lanes form groups, each of which takes a vector at a time.
#pragma once

#include "threads.h"

namespace lancet {

/// A lane's part of vectors of `dim` numbers, at most 256: a pack of neighbours, and so again after the group's others.
template <typename T>
struct VectorLanes {
  static constexpr int kPack = Pack<T>::kSize, kNumbers = 8, kPacks = kNumbers / kPack;
  typedef Wide<T> Part[kNumbers];

  int dim;
  int size;   ///< lanes of a group: a power of two
  int lane;   ///< place in its group
  int group;  ///< its group's place in the warp
  bool has_packs;

  __device__ inline int groups() const { return kWarp / size; }

  /// Zero beyond the vector.
  __device__ inline void load(const T* x, Part& to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = (p * size + lane) * kPack;
      if (has_packs) {
        const Pack<T> pack = begin < dim ? Pack<T>::from(x + begin) : Pack<T>();
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] = wide(pack.numbers[i]);
      } else {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] =
            begin + i < dim ? wide(x[begin + i]) : Wide<T>(0);
      }
    }
  }

  __device__ inline void store(const Part& x, T* to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = (p * size + lane) * kPack;
      if (!has_packs) {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) if (begin + i < dim) to[begin + i] = narrow<T>(x[p * kPack + i]);
      } else if (begin < dim) {
        Pack<T> pack;
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) pack.numbers[i] = narrow<T>(x[p * kPack + i]);
        pack.to(to + begin);
      }
    }
  }

  /// Takes the product of two vectors; the group's lanes all get it.
  __device__ inline Wide<T> product(const Part& a, const Part& b) const {
    Wide<T> sum = 0;
    LANCET_UNROLL for (int i = 0; i < kNumbers; ++i) sum += a[i] * b[i];
    for (int other = size / 2; other > 0; other /= 2) sum += from_lane(sum, other);
    return sum;
  }

  /// Adds up what the groups have; all lanes get the sum.
  __device__ inline Wide<T> over_groups(Wide<T> x) const {
    for (int other = size; other < kWarp; other *= 2) x += from_lane(x, other);
    return x;
  }
  __device__ inline void over_groups(Part& x) const {
    LANCET_UNROLL for (int i = 0; i < kNumbers; ++i) x[i] = over_groups(x[i]);
  }
};

template <typename W>
__device__ inline void add_scaled(W (&to)[8], W scale, const W (&x)[8]) {
  LANCET_UNROLL for (int i = 0; i < 8; ++i) to[i] += scale * x[i];
}

template <typename T>
__device__ inline VectorLanes<T> vector_lanes(int dim, bool has_packs) {
  int size = 1;
  while (size < kWarp && size * Pack<T>::kSize < dim) size *= 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return {dim, size, lane % size, lane / size, has_packs && dim % Pack<T>::kSize == 0};
}

/// A warp's place among all of the launch.
__device__ inline Index first_item() {
  return first_row() * (next_numbers() / kWarp) + static_cast<Index>(threadIdx.x) / kWarp;
}
__device__ inline Index next_items() { return next_rows() * (next_numbers() / kWarp); }

}  // namespace lancet
