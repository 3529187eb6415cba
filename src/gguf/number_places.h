// Names with places for numbers: "blk.{}.attn_q", "model.layers.{}.mlp.experts.{}.up_proj".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// The numbers of a name: a layer's, and an expert's where there is one.
using NameNumbers = std::array<int64_t, 2>;

/// Returns the numbers that stand in the pattern's places, where the rest is the name; nullopt: it is another name.
/// What has no place is 0.
std::optional<NameNumbers> numbers_in(std::string_view name, std::string_view pattern);

/// Returns the pattern with the numbers in the places for them, in turn.
std::string numbered(std::string_view pattern, const NameNumbers& numbers);

/// Returns the number of places.
int64_t places_in(std::string_view pattern);

}  // namespace lancet
