#include "lancet/core/message_tag.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

class SipState {
 public:
  explicit SipState(const TagKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575ULL),
        v1_(key[1] ^ 0x646f72616e646f6dULL),
        v2_(key[0] ^ 0x6c7967656e657261ULL),
        v3_(key[1] ^ 0x7465646279746573ULL) {}

  void add(uint64_t word) {
    v3_ ^= word;
    rounds(2);
    v0_ ^= word;
  }

  uint64_t finish() {
    v2_ ^= 0xff;
    rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  uint64_t v0_, v1_, v2_, v3_;
};

/// Reads up to eight bytes, with the lowest byte first.
uint64_t little_endian(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = bytes.size(); i > 0; --i) word = (word << 8) | static_cast<uint8_t>(bytes[i - 1]);
  return word;
}

}  // namespace

TagKey tag_key(std::string_view secret) {
  const std::string hex = ContentHash().add(secret).hex();
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

uint64_t tag_of(const TagKey& key, std::string_view text) {
  constexpr size_t kWord = sizeof(uint64_t);
  SipState state(key);
  const size_t whole = text.size() / kWord * kWord;
  for (size_t at = 0; at < whole; at += kWord) state.add(little_endian(text.substr(at, kWord)));
  state.add(little_endian(text.substr(whole)) | (static_cast<uint64_t>(text.size() & 0xff) << 56));
  return state.finish();
}

std::string random_secret() {
  TagKey bits{};
  if (::getrandom(bits.data(), sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits)))
    throw Error(ExitCode::kInternal, cat("getrandom: ", std::strerror(errno)));
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(bits[0]),
                static_cast<unsigned long long>(bits[1]));
  return text.data();
}

}  // namespace lancet
