// Slopes of attention that falls with the distance (ALiBi, arXiv 2108.12409), as families have them.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// Powers of one base for the largest power of two of heads; what is left takes every other one of twice as many.
std::vector<double> alibi_slopes(int64_t n_heads);

/// MPT's, of the next power of two: every other one first.
std::vector<double> mpt_slopes(int64_t n_heads);

}  // namespace lancet
