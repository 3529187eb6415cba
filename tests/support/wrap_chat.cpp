// wrap_chat MODEL_FOLDER < lines.jsonl, for the parity tests.
// A line is a JSON string, a user's text, or {"messages", "thinking": true, false or none}; it is answered by {"name",
// "text", "ids"} of the folder's chat template, or by {"error"}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/text/chat_template.h"

namespace lancet {
namespace {

nlohmann::json wrapped(const ChatTemplate& chat, const Tokenizer& tokenizer, const nlohmann::json& asked) {
  if (asked.is_string()) {
    const auto text = asked.get<std::string>();
    return {{"name", chat.name()}, {"text", chat.wrap(text)}, {"ids", chat.ids(tokenizer, text)}};
  }
  std::vector<ChatMessage> messages;
  for (const nlohmann::json& message : asked["messages"]) messages.push_back({message["role"], message["content"]});
  const nlohmann::json wanted = asked.value("thinking", nlohmann::json());
  const Thinking thinking = wanted.is_null() ? Thinking::kAsTemplate : wanted ? Thinking::kWanted : Thinking::kNone;
  return {{"name", chat.name()},
          {"text", chat.render(messages, thinking)},
          {"ids", chat.ids(tokenizer, messages, thinking)}};
}

}  // namespace
}  // namespace lancet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: wrap_chat MODEL_FOLDER < lines.jsonl\n";
    return 2;
  }
  try {
    const auto chat = lancet::ChatTemplate::of(argv[1]);
    const auto tokenizer = lancet::open_tokenizer(argv[1]);
    for (std::string line; std::getline(std::cin, line);) try {
        std::cout << lancet::wrapped(chat, *tokenizer, nlohmann::json::parse(line)) << '\n';
      } catch (const lancet::Error& error) {
        std::cout << nlohmann::json{{"error", error.what()}} << '\n';
      }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
