// Content keys: XXH3-128 over everything that a result depends on. Never names, never dates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// Order matters; every `add` also adds its length, so that ("ab", "c") and ("a", "bc") differ.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  ContentHash& add(std::span<const std::byte> bytes);
  ContentHash& add(std::string_view text);
  ContentHash& add(int64_t number);
  /// Adds `length` bytes as add() of one span; `read` copies them, from an offset on, into the pieces that it is given.
  ContentHash& add(uint64_t length, const std::function<void(uint64_t offset, std::span<std::byte> piece)>& read);

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lancet
