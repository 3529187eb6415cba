// Texts as TF-IDF vectors over a given vocabulary, and their similarity.
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

/// Agrees with scikit-learn's TfidfVectorizer with default options: words are runs of at least two letters, digits or
/// underscores, in lower case; counts are multiplied by idf, and vectors are divided by their norm. Letters other than
/// Latin, Greek and Cyrillic keep their case.
class TfIdf {
 public:
  /// Reads the files. `idf`: a .npy file with a number for each column; `vocabulary`: a JSON object from words to
  /// columns. Throws: ConfigError for files that cannot be read or do not match.
  static TfIdf open(const std::filesystem::path& idf, const std::filesystem::path& vocabulary);

  TfIdf(std::vector<double> idf, std::map<std::string, size_t> columns)
      : idf_(std::move(idf)), columns_(std::move(columns)) {}

  /// Returns the cosine similarity of two texts; nullopt when one of them has no word of the vocabulary.
  std::optional<double> cosine(std::string_view a, std::string_view b) const;

 private:
  std::map<size_t, double> weights(std::string_view text) const;

  std::vector<double> idf_;
  std::map<std::string, size_t> columns_;
};

}  // namespace lancet
