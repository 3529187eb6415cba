// For the parity tests: tokenize_lines MODEL_FOLDER_OR_FILE < lines.jsonl
// A line is a JSON string, answered by {"ids", "spans", "text": the ids decoded}, or a list of ids, answered by
// {"text"}. What cannot be tokenised is answered by {"error"}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/text/tokenizer.h"

namespace {

std::unique_ptr<lancet::Tokenizer> open(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return lancet::open_tokenizer(path);
  if (path.extension() == ".json") return lancet::open_bpe_tokenizer(path);
  return lancet::open_sentencepiece_tokenizer(path, {});
}

nlohmann::json answer(const lancet::Tokenizer& tokenizer, const nlohmann::json& line) {
  if (line.is_array()) return {{"text", tokenizer.decode(line.get<std::vector<lancet::TokenId>>())}};
  const lancet::Encoding encoding = tokenizer.encode(line.get_ref<const std::string&>());
  nlohmann::json spans = nlohmann::json::array();
  for (const lancet::ByteSpan& span : encoding.spans) spans.push_back({span.begin, span.end});
  return {{"ids", encoding.ids}, {"spans", std::move(spans)}, {"text", tokenizer.decode(encoding.ids)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_lines MODEL_FOLDER_OR_FILE < lines.jsonl\n";
    return 2;
  }
  try {
    const auto tokenizer = open(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      try {
        std::cout << answer(*tokenizer, nlohmann::json::parse(line)).dump() << '\n';
      } catch (const lancet::Error& error) {
        std::cout << nlohmann::json{{"error", error.what()}}.dump() << '\n';
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
