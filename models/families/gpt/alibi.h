// The slopes of ALiBi (arXiv 2108.12409), with which attention decreases with the distance.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// Returns powers of one base for the largest power of two of heads. The remaining heads get every other slope of twice
/// as many heads.
std::vector<double> alibi_slopes(int64_t n_heads);

/// Returns the slopes of MPT: those of the next power of two, every other one first.
std::vector<double> mpt_slopes(int64_t n_heads);

}  // namespace lancet
