// What a corpus reads as.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/io/files.h"

namespace lancet::testing {

inline std::vector<std::string> documents_of(const std::filesystem::path& path) {
  DocumentReader reader(path);
  std::vector<std::string> documents;
  while (auto document = reader.next()) documents.push_back(*document);
  EXPECT_FALSE(reader.next().has_value());
  return documents;
}

inline std::string corpus_refusal(const std::filesystem::path& path) {
  return message_of<ConfigError>([&] { documents_of(path); });
}

}  // namespace lancet::testing
