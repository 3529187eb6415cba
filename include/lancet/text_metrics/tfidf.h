// Texts as TF-IDF vectors over a given vocabulary, and how alike two of them are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lancet {

/// Agrees with scikit-learn's TfidfVectorizer in its defaults: words are runs of at least two letters, digits or
/// underscores, in lower case; counts times idf, divided by the vector's norm. Letters beyond Latin, Greek and Cyrillic
/// stay in the case they have.
class TfIdf {
 public:
  /// `idf`: a .npy file with a number for each column; `vocabulary`: a JSON object from words to columns.
  /// Throws: ConfigError for files that cannot be read or do not fit each other.
  static TfIdf open(const std::filesystem::path& idf, const std::filesystem::path& vocabulary);

  TfIdf(std::vector<double> idf, std::map<std::string, size_t> columns)
      : idf_(std::move(idf)), columns_(std::move(columns)) {}

  /// nullopt when one of the texts has no word of the vocabulary.
  std::optional<double> cosine(std::string_view a, std::string_view b) const;

 private:
  std::map<size_t, double> weights(std::string_view text) const;

  std::vector<double> idf_;
  std::map<std::string, size_t> columns_;
};

}  // namespace lancet
