// wrap_chat MODEL_FOLDER < lines.jsonl, for the parity tests.
// A line is a JSON string, a user's text, answered by {"name", "text", "ids"} of the folder's chat template.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "lancet/text/chat_template.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: wrap_chat MODEL_FOLDER < lines.jsonl\n";
    return 2;
  }
  try {
    const auto chat = lancet::ChatTemplate::of(argv[1]);
    const auto tokenizer = lancet::open_tokenizer(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      const std::string text = nlohmann::json::parse(line).get<std::string>();
      std::cout << nlohmann::json{{"name", chat.name()}, {"text", chat.wrap(text)}, {"ids", chat.ids(*tokenizer, text)}}
                << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
