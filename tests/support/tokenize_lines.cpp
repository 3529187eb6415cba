// tokenize_lines MODEL_FOLDER_OR_FILE < lines.jsonl, for the parity tests.
// A line is a JSON string, answered by {"ids", "spans", "text": the ids decoded}, or a list of ids, answered by
// {"text"}. What cannot be tokenised is answered by {"error"}. With --brief there are no spans.
// tokenize_lines MODEL_FOLDER_OR_FILE --time TEXT, for bench/compare_tokenizers.py, encodes each line of a text file
// and prints {"tokens", "seconds", "seconds_to_open"}.
#include <chrono>
#include <fstream>
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

nlohmann::json brief_answer(const lancet::Tokenizer& tokenizer, const nlohmann::json& line) {
  const std::vector<lancet::TokenId> ids = tokenizer.ids(line.get_ref<const std::string&>());
  return {{"ids", ids}, {"text", tokenizer.decode(ids)}};
}

nlohmann::json answer(const lancet::Tokenizer& tokenizer, const nlohmann::json& line) {
  if (line.is_array()) return {{"text", tokenizer.decode(line.get<std::vector<lancet::TokenId>>())}};
  const lancet::Encoding encoding = tokenizer.encode(line.get_ref<const std::string&>());
  nlohmann::json spans = nlohmann::json::array();
  for (const lancet::ByteSpan& span : encoding.spans) spans.push_back({span.begin, span.end});
  return {{"ids", encoding.ids}, {"spans", std::move(spans)}, {"text", tokenizer.decode(encoding.ids)}};
}

nlohmann::json times(const std::filesystem::path& model, const char* file) {
  const auto seconds_since = [](std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<std::string> lines;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = open(model);
  const double seconds_to_open = seconds_since(start);
  size_t tokens = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& line : lines) tokens += tokenizer->ids(line).size();
  return {{"tokens", tokens}, {"seconds", seconds_since(begin)}, {"seconds_to_open", seconds_to_open}};
}

}  // namespace

int main(int argc, char** argv) {
  const bool timed = argc == 4 && std::string_view(argv[2]) == "--time";
  const bool brief = argc == 3 && std::string_view(argv[2]) == "--brief";
  if (argc != 2 && !timed && !brief) {
    std::cerr << "usage: tokenize_lines MODEL_FOLDER_OR_FILE [--brief] < lines.jsonl, or "
                 "MODEL_FOLDER_OR_FILE --time TEXT\n";
    return 2;
  }
  try {
    if (timed) {
      std::cout << times(argv[1], argv[3]).dump() << '\n';
      return 0;
    }
    const auto tokenizer = open(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      try {
        const nlohmann::json asked = nlohmann::json::parse(line);
        std::cout << (brief ? brief_answer(*tokenizer, asked) : answer(*tokenizer, asked)).dump() << '\n';
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
