#include "lancet/core/hash.h"

#include <xxhash.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <vector>

namespace lancet {
namespace {

/// At most half of a core's level-2 cache, so that a piece is hashed while it is in the cache.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;

}  // namespace

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

ContentHash& ContentHash::add(uint64_t length, const std::function<void(uint64_t, std::span<std::byte>)>& read) {
  XXH3_128bits_update(state_->xxh, &length, sizeof length);
  std::vector<std::byte> buffer(std::min(length, kPieceBytes));
  for (uint64_t done = 0; done < length; done += buffer.size()) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), length - done));
    read(done, piece);
    XXH3_128bits_update(state_->xxh, piece.data(), piece.size());
  }
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
