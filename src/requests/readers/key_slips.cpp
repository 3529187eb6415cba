#include "key_slips.h"

#include <cctype>

#include "lancet/core/edit_distance.h"

namespace lancet {
namespace {

/// Short keys of data sets ("pid") are similar to other keys by chance.
constexpr size_t kShortestMisspelt = 5;

std::string plain_key(std::string key) {
  for (char& c : key) c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

}  // namespace

std::string meant_key(const std::string& key, std::span<const std::string> known) {
  if (key.size() < kShortestMisspelt) return {};
  const std::string plain = plain_key(key);
  const size_t slips = key.size() < 12 ? 1 : 2;
  for (const std::string& other : known)
    if (other.size() >= kShortestMisspelt && edit_distance(plain, plain_key(other)) <= slips) return other;
  return {};
}

}  // namespace lancet
