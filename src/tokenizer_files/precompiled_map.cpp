#include "lancet/tokenizer_files/precompiled_map.h"

#include <array>
#include <stdexcept>

namespace lancet {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string from_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  unsigned n_bits = 0;
  for (const char c : text) {
    const size_t value = kBase64.find(c);
    if (value == std::string_view::npos) throw std::invalid_argument("not base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out += static_cast<char>(bits >> n_bits & 0xFF);
  }
  return out;
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Fields of a unit of the double array.

uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }
uint32_t label_of(uint32_t unit) { return unit & (1U << 31 | 0xFFU); }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ((1U << 31) - 1); }

}  // namespace

PrecompiledMap::PrecompiledMap(std::string_view charsmap) {
  const std::string bytes = from_base64(charsmap);
  const std::string_view view = bytes;
  if (view.size() < 4) throw std::invalid_argument("shorter than its length field");
  const uint32_t n_bytes = little_endian(view);
  if (n_bytes % 4 != 0 || n_bytes > view.size() - 4)
    throw std::invalid_argument("the length of its table does not fit its size");
  for (size_t at = 4; at < 4 + size_t{n_bytes}; at += 4) units_.push_back(little_endian(view.substr(at)));
  if (units_.empty()) throw std::invalid_argument("its table is empty");
  replacements_ = view.substr(4 + size_t{n_bytes});
}

std::optional<std::string_view> PrecompiledMap::replacement(std::string_view text) const {
  uint32_t at = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return std::nullopt;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size() || value_of(units_[at]) > replacements_.size()) return std::nullopt;
    const std::string_view rest = std::string_view(replacements_).substr(value_of(units_[at]));
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

}  // namespace lancet
