#include "lancet/core/hash.h"

#include <xxhash.h>
#include <array>
#include <cstdio>
#include <new>

namespace lancet {

struct ContentHash::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;

ContentHash& ContentHash::add(std::span<const std::byte> bytes) {
  const uint64_t length = bytes.size();
  XXH3_128bits_update(state_->xxh, &length, sizeof length);
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

ContentHash& ContentHash::add(std::string_view text) { return add(std::as_bytes(std::span(text.data(), text.size()))); }

ContentHash& ContentHash::add(int64_t number) { return add(std::as_bytes(std::span(&number, 1))); }

std::string ContentHash::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

}  // namespace lancet
