// Content hashes: XXH3-128 over everything that a result depends on. Names and dates are never hashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// Hashes a sequence of values. Order matters. Every `add` also adds its length, so ("ab", "c") and ("a", "bc") differ.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  ContentHash& add(std::span<const std::byte> bytes);
  ContentHash& add(std::string_view text);
  ContentHash& add(int64_t number);
  /// Adds `length` bytes, with the same result as add() of one span. `read` copies the bytes from `offset` into
  /// `piece`.
  ContentHash& add(uint64_t length, const std::function<void(uint64_t offset, std::span<std::byte> piece)>& read);

  /// Returns 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lancet
