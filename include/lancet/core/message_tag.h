// Authenticates a text: only who knows the secret can compute its tag. SipHash-2-4 (Aumasson, Bernstein 2012).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lancet {

using TagKey = std::array<uint64_t, 2>;

/// Derives a key from a secret that nobody can guess: one of random_secret(), or one as strong.
TagKey tag_key(std::string_view secret);

/// Returns the tag, 64 bits.
uint64_t tag_of(const TagKey& key, std::string_view text);

/// Returns 32 hexadecimal digits from the system's random generator. Throws: Error if the generator fails.
std::string random_secret();

}  // namespace lancet
