// Small things that ranks tell each other, in the words of the code that needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lancet/runtime/communicator.h"

namespace lancet {

/// Collective: root's list, on every rank.
std::vector<int64_t> broadcast_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);
std::vector<std::string> broadcast_texts(Communicator& communicator, const std::vector<std::string>& texts);

/// Collective: each rank's list, by rank, on every rank.
std::vector<std::vector<int64_t>> gather_numbers(Communicator& communicator, const std::vector<int64_t>& numbers);

/// Returns those of the pieces 0 ... count - 1 that are this rank's, ascending.
std::vector<size_t> own_pieces(const Communicator& communicator, size_t count);

}  // namespace lancet
