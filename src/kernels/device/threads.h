// What a GPU's threads share: how they take rows and numbers, sums over a warp and a block, and loads of 128 bits. Sums
// are in an order that is the same in every run.
#pragma once

#include "elementwise.h"

namespace lancet {

typedef long long Index;

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

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T numbers[kSize];
};

__device__ inline bool is_aligned(const void* at) { return reinterpret_cast<unsigned long long>(at) % 16 == 0; }

}  // namespace lancet
