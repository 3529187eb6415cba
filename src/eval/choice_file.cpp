#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/eval/side_effects.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownLines = 20;

/// Throws: ConfigError "field: ..." for the first problem.
ChoiceItem parse_item(const std::string& line) {
  Json json;
  try {
    json = parse_strict_json(line);
  } catch (const JsonProblem& problem) {
    throw ConfigError(problem.what());
  }
  if (!json.is_object()) throw ConfigError("expected an object {question, choices, answer}");
  ChoiceItem item;
  const auto question = json.find("question");
  if (question == json.end() || !question->is_string() || question->get<std::string>().empty())
    throw ConfigError("question: expected text");
  item.question = *question;
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->size() < 2)
    throw ConfigError("choices: expected a list of at least two texts");
  for (const Json& choice : *choices) {
    if (!choice.is_string() || choice.get<std::string>().empty()) throw ConfigError("choices: expected texts");
    item.choices.push_back(choice);
  }
  const auto answer = json.find("answer");
  const auto n_choices = item.choices.size();
  if (answer != json.end() && answer->is_number_unsigned() && answer->get<size_t>() < n_choices) {
    item.answer = *answer;
    return item;
  }
  if (answer != json.end() && answer->is_string())
    for (item.answer = 0; item.answer < n_choices; ++item.answer)
      if (item.choices[item.answer] == *answer) return item;
  throw ConfigError(cat("answer: expected one of the choices, or its index from 0 to ", n_choices - 1));
}

}  // namespace

std::vector<ChoiceItem> load_choices(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, "multiple choice");
  std::vector<ChoiceItem> items;
  std::vector<std::string> problems;
  const std::vector<std::string> lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      items.push_back(parse_item(lines[i]));
    } catch (const ConfigError& error) {
      problems.push_back(cat(path.string(), ": line ", i + 1, ": ", error.what()));
    }
  }
  if (problems.size() > kShownLines) {
    const size_t more = problems.size() - kShownLines;
    problems.resize(kShownLines);
    problems.push_back(cat("... and ", more, " more"));
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  if (items.empty()) throw ConfigError(cat(path.string(), ": holds no question"));
  return items;
}

}  // namespace lancet
