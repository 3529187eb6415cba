// The codebooks of IQ1, IQ2 and IQ3: the points that 8 or 4 numbers of a block can be, without signs and scale.
// Source: ggml-org/ggml, src/ggml-common.h (iq2xxs_grid, iq2xs_grid, iq2s_grid, iq1s_grid, iq3xxs_grid, iq3s_grid).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lancet {

/// Numbers of one code.
template <size_t kSize>
using CodebookPoint = std::array<int8_t, kSize>;

// By code.

extern const std::array<CodebookPoint<8>, 256> kIq2XxsPoints;
extern const std::array<CodebookPoint<8>, 512> kIq2XsPoints;
extern const std::array<CodebookPoint<8>, 1024> kIq2SPoints;
/// Of IQ1_S and IQ1_M.
extern const std::array<CodebookPoint<8>, 2048> kIq1Points;
extern const std::array<CodebookPoint<4>, 256> kIq3XxsPoints;
extern const std::array<CodebookPoint<4>, 512> kIq3SPoints;

}  // namespace lancet
