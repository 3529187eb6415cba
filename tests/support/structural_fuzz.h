// Documents changed by their own structure: what is there, of what type, how large. They stay well-formed.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::testing {

using FuzzedJson = nlohmann::ordered_json;

/// A document, and what was done to it: "/batches/0: null".
struct FuzzedDocument {
  std::string text = {};
  std::string change = {};
  std::string place = {};  ///< place with "*" for numbers of elements: "/batches/*"
  bool is_typed = false;   ///< the value is absent or of another type now; otherwise of another size, or twice there
};

/// Numbers at the bounds of what readers count, index and size by.
inline FuzzedJson any_number(std::mt19937_64& random) {
  static const std::vector<FuzzedJson> kNumbers = {
      0,   -1,     1'000'000'000,   std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max(), 1e300,
      0.5, 65'537, int64_t{1} << 40};
  return kNumbers[random() % kNumbers.size()];
}

inline FuzzedJson any_text(std::mt19937_64& random) {
  static const std::vector<std::string> kTexts = {
      "",  std::string(100'000, 'x'), "../../etc/passwd", std::string("a\0b\n\x1b[2J", 8),
      "1", "\xf0\x9f\x98\x80 {} \""};
  return kTexts[random() % kTexts.size()];
}

/// `inner` within 70 or 1,000 lists and objects.
inline FuzzedJson nested(FuzzedJson inner, std::mt19937_64& random) {
  for (uint64_t depth = random() % 2 == 0 ? 70 : 1'000; depth > 0; --depth) {
    FuzzedJson outer = random() % 2 == 0 ? FuzzedJson::array() : FuzzedJson::object();
    outer.is_array() ? outer.push_back(std::move(inner)) : void(outer["a"] = std::move(inner));
    inner = std::move(outer);
  }
  return inner;
}

/// Any value there may be in JSON; `old` is what stood there.
inline FuzzedJson other_value(const FuzzedJson& old, std::mt19937_64& random) {
  using Json = FuzzedJson;
  switch (random() % 14) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
    case 3:
    case 4:
      return any_number(random);
    case 5:
    case 6:
      return any_text(random);
    case 7:
      return Json::array();
    case 8:
      return Json::object();
    case 9:
      return Json::array({old});
    case 10:
      return Json{{"a", old}};
    case 11:
      return nested(old, random);
    case 12:
      return Json(1'000, old);
    default:
      if (old.is_number_integer()) return Json(old.get<int64_t>() % 1'000'000 - 1);
      return old.is_structured() && !old.empty() ? Json(*old.begin()) : Json::array({nullptr, old});
  }
}

/// Keys stand twice where this stands after them, until a document is text.
inline constexpr const char* kTwice = "\x02twice";

inline void collect_places(const FuzzedJson& json, const std::string& at, std::vector<std::string>& places) {
  places.push_back(at);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      std::string name = key;
      for (size_t i = 0; (i = name.find_first_of("~/", i)) != std::string::npos; i += 2)
        name.replace(i, 1, name[i] == '~' ? "~0" : "~1");
      collect_places(value, at + "/" + name, places);
    }
  if (json.is_array())
    for (size_t i = 0; i < json.size(); ++i) collect_places(json[i], cat(at, "/", i), places);
}

inline std::string general_place(const std::string& place) {
  std::string general;
  for (const std::string& part : split(place, '/'))
    if (!part.empty()) general += part.find_first_not_of("0123456789") == std::string::npos ? "/*" : "/" + part;
  return general;
}

/// `document` with one value changed, anywhere.
inline FuzzedDocument fuzzed(FuzzedJson document, std::mt19937_64& random) {
  std::vector<std::string> places;
  collect_places(document, "", places);
  const std::string place = places[random() % places.size()];
  const FuzzedJson::json_pointer at(place);
  FuzzedDocument result{.place = general_place(place)};
  const uint64_t way = random() % 8;
  if (way == 0 && !place.empty()) {
    FuzzedJson& parent = document[at.parent_pointer()];
    result.is_typed = parent.is_object();
    parent.is_object() ? void(parent.erase(at.back())) : parent.erase(std::stoull(at.back()));
    result.change = place + ": absent";
  } else if (way == 1 && !place.empty()) {
    FuzzedJson& parent = document[at.parent_pointer()];
    const FuzzedJson value = document[at];
    parent.is_object() ? void(parent[at.back() + kTwice] = value) : parent.push_back(value);
    result.change = place + ": twice";
  } else {
    const FuzzedJson old = document[at];
    document[at] = other_value(old, random);
    const FuzzedJson& now = document[at];
    result.is_typed = old.type() != now.type() && !(old.is_number() && now.is_number());
    result.change = cat(place, ": ", now.dump(-1, ' ', true, FuzzedJson::error_handler_t::replace).substr(0, 60));
  }
  result.text = document.dump(-1, ' ', false, FuzzedJson::error_handler_t::replace);
  for (size_t found; (found = result.text.find("\\u0002twice")) != std::string::npos;) result.text.erase(found, 11);
  return result;
}

/// Cases of a test: `few`, or with LANCET_TEST_FULL its share of 20,000.
inline int64_t fuzz_cases(int64_t few, int64_t all) { return std::getenv("LANCET_TEST_FULL") != nullptr ? all : few; }

/// Returns the most memory that this process took, in bytes.
inline int64_t largest_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// Reads a changed document: lancet's own errors alone are refusals, within 10 s. Returns whether it was read.
inline bool reads_fuzzed(const std::function<void()>& read) {
  const auto begin = std::chrono::steady_clock::now();
  bool is_read = false;
  try {
    read();
    is_read = true;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
  } catch (const std::exception& error) {
    ADD_FAILURE() << "exit code 70: " << std::string(error.what()).substr(0, 2'000);
  }
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 10.0);
  return is_read;
}

/// Less than 1 GB more than before its life, or than what earlier tests took.
struct MemoryBound {
  MemoryBound() = default;
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;
  ~MemoryBound() { EXPECT_LT(largest_memory(), before + 1'000'000'000); }

  int64_t before = largest_memory();
};

}  // namespace lancet::testing
