// Small files for the tests of io/, made by hand: nothing here uses the code under test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "temp_dir.h"

namespace lancet::testing {

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream bytes;  // iterators, unoptimised as tests are, take a second for a few megabytes
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

/// The bytes of a safetensors file with this header, as it stands.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xff);
  return bytes.append(header).append(data);
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Makes one to three changes: a byte, or a number that is as extreme as a field can be.
inline std::string damaged(std::string bytes, std::mt19937_64& random) {
  constexpr uint64_t kExtremes[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~uint64_t{0}};
  for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t at = random() % bytes.size();
    if (random() % 2 == 0) {
      bytes[at] = static_cast<char>(random());
    } else {
      const uint64_t value = kExtremes[random() % std::size(kExtremes)];
      const size_t count = std::min<size_t>(size_t{1} << random() % 4, bytes.size() - at);
      bytes.replace(at, count, reinterpret_cast<const char*>(&value), count);
    }
  }
  return bytes;
}

/// Every name in the folder, hidden ones too.
inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

/// The message of the `E` that `act` throws; another exception, or none, fails the test.
template <typename E, typename Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no exception";
  return {};
}

inline void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
}

}  // namespace lancet::testing
