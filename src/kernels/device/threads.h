// What a GPU's threads share: how they take rows and numbers, sums over a warp and a block, and loads of 128 bits. Sums
// are in an order that is the same in every run.
#pragma once

#include "elementwise.h"

namespace lancet {

typedef long long Index;

/// Memory that nothing else of the kernel's arguments is.
template <typename T>
using Read = const T* __restrict__;
template <typename T>
using Write = T* __restrict__;

constexpr int kWarp = 32, kMostWarps = 32;
constexpr float kInfinity = __builtin_bit_cast(float, 0x7F800000U);
constexpr float kNotANumber = __builtin_bit_cast(float, 0x7FC00000U);

__device__ inline Index first_row() { return static_cast<Index>(blockIdx.x); }
__device__ inline Index next_rows() { return static_cast<Index>(gridDim.x); }
__device__ inline Index first_number() { return static_cast<Index>(threadIdx.x); }
__device__ inline Index next_numbers() { return static_cast<Index>(blockDim.x); }

// ---- Reductions

__device__ inline float from_lane(float x, int other) { return __shfl_xor_sync(0xFFFFFFFFU, x, other); }
__device__ inline double from_lane(double x, int other) { return __shfl_xor_sync(0xFFFFFFFFU, x, other); }
template <typename W>
__device__ inline SoftmaxSum<W> from_lane(SoftmaxSum<W> x, int other) {
  return {from_lane(x.greatest, other), from_lane(x.sum, other)};
}

__device__ inline float joined(float a, float b) { return a + b; }
__device__ inline double joined(double a, double b) { return a + b; }

template <typename V>
__device__ inline V joined_in_warp(V value) {
  for (int other = kWarp / 2; other > 0; other /= 2) value = joined(value, from_lane(value, other));
  return value;
}

/// The values of all of the block's threads joined; every thread gets the result. `none` changes nothing when joined.
template <typename V>
__device__ inline V joined_in_block(V value, V none) {
  __shared__ V parts[kMostWarps];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  value = joined_in_warp(value);
  if (lane == 0) parts[thread / kWarp] = value;
  __syncthreads();
  value = joined_in_warp(lane < static_cast<int>(blockDim.x) / kWarp ? parts[lane] : none);
  __syncthreads();  // the next row's parts may be written
  return value;
}

// ---- 128 bits at a time

/// So many neighbours, read and written by one instruction. On GPUs such a place must be aligned to the whole.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Chunk {
  static constexpr int kSize = kCount;
  T numbers[kCount];

  static __device__ inline Chunk from(const T* at) { return *reinterpret_cast<const Chunk*>(at); }
  __device__ inline void to(T* at) const { *reinterpret_cast<Chunk*>(at) = *this; }
};

template <typename T>
using Pack = Chunk<T, 16 / sizeof(T)>;
template <typename T>
using Single = Chunk<T, 1>;

/// Whether packs may be read and written there; null, where nothing is, too.
__device__ inline bool is_aligned(const void* at) { return reinterpret_cast<unsigned long long>(at) % 16 == 0; }
template <typename... More>
__device__ inline bool is_aligned(const void* at, const More*... more) {
  return is_aligned(at) && is_aligned(more...);
}

/// Whether rows of such a width may be taken by packs.
template <typename T>
__device__ inline bool is_whole(Index width) {
  return width % Pack<T>::kSize == 0;
}

/// Calls run(a chunk of the size that is to be taken, place of its first number) for the numbers of a row, which the
/// block's threads share: packs or singles. `has_packs`: the row is whole packs.
template <typename T, typename Run>
__device__ inline void over_row(Index width, bool has_packs, const Run& run) {
  if (has_packs) {
    const Index packs = width / Pack<T>::kSize;
    for (Index i = first_number(); i < packs; i += next_numbers()) run(Pack<T>(), i * Pack<T>::kSize);
  } else {
    for (Index i = first_number(); i < width; i += next_numbers()) run(Single<T>(), i);
  }
}

}  // namespace lancet
