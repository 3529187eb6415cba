// A tag that only who knows a secret can give to a text: SipHash-2-4 (Aumasson, Bernstein 2012).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lancet {

using TagKey = std::array<uint64_t, 2>;

/// Makes a key of a secret that nobody can guess: made by random_secret(), or as good.
TagKey tag_key(std::string_view secret);

/// 64 bits.
uint64_t tag_of(const TagKey& key, std::string_view text);

/// 32 hexadecimal digits from the system's generator. Throws: Error when it gives none.
std::string random_secret();

}  // namespace lancet
