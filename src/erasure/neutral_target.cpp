#include "neutral_target.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "lancet/core/error.h"
#include "lancet/core/split_mix.h"
#include "lancet/core/strings.h"
#include "lancet/models/generate.h"
#include "lancet/text/prompt.h"
#include "lancet/text_metrics/answer_match.h"

namespace lancet {
namespace {

constexpr int64_t kWordTokens = 6;  ///< the first word is searched in this many tokens

constexpr std::string_view kBeginnings[] = {"Vor", "Tan", "Mel", "Quo", "Bra", "Zel", "Dri", "Hus"};
constexpr std::string_view kEndings[] = {"kel", "dris", "mund", "vath", "lon", "ferri", "gosh", "tane"};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Returns the text's first word, if there is white space before it.
std::string first_word(std::string_view added) {
  if (added.empty() || !is_space(added.front())) return {};
  const auto begin = std::find_if_not(added.begin(), added.end(), is_space);
  std::string word(begin, std::find_if(begin, added.end(), is_space));
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())) != 0) word.pop_back();
  return normalized_answer(word).empty() ? std::string() : word;
}

std::string with_subject(const SubjectPrompt& prompt, const std::string& subject) {
  std::string text = prompt.text;
  return text.replace(static_cast<size_t>(prompt.subject.begin),
                      static_cast<size_t>(prompt.subject.end - prompt.subject.begin), subject);
}

/// Whether the word can be the target after the prompt.
bool may_follow(const Tokenizer& tokenizer, const SubjectPrompt& prompt, const std::string& word) {
  try {
    continue_prompt(tokenizer, prompt.text, word, "");
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// Returns the most frequent of the words that can replace the old answer; empty if none can.
std::string commonest(std::span<const std::string> words, const Tokenizer& tokenizer, const EditRequest& request,
                      const std::string& old_answer) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : words) ++counts[word];
  std::string best;
  for (const std::string& word : words) {
    const std::string answers[] = {word};
    if (word.empty() || contains(old_answer, answers) || !may_follow(tokenizer, request.prompt, word)) continue;
    if (best.empty() || counts[word] > counts[best]) best = word;
  }
  return best;
}

}  // namespace

std::vector<std::string> made_up_subjects(uint64_t seed, int64_t count) {
  std::vector<std::string> names;
  uint64_t drawn = 0;
  const auto draw = [&](std::span<const std::string_view> parts) {
    return parts[split_mix(split_mix(seed) + drawn++) % parts.size()];
  };
  const auto word = [&] {
    const std::string_view beginning = draw(kBeginnings);
    return cat(beginning, draw(kEndings));
  };
  while (static_cast<int64_t>(names.size()) < count) {
    const std::string first = word();
    names.push_back(cat(first, " ", word()));
  }
  return names;
}

std::vector<std::string> first_words(const CausalLM& model, const Tokenizer& tokenizer,
                                     std::span<const std::string> prompts) {
  std::vector<GenerateRow> rows;
  for (const std::string& prompt : prompts) rows.push_back({tokenizer.ids(prompt), kWordTokens});
  GenerateOptions options;
  if (const std::optional<TokenId> end = tokenizer.eos_id()) options.eos_ids = {*end};
  const std::vector<std::vector<TokenId>> added = generate(model, rows, options);
  std::vector<std::string> words;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<TokenId> ids = rows[i].prompt;
    const size_t before = tokenizer.decode(ids).size();
    ids.insert(ids.end(), added[i].begin(), added[i].end());
    const std::string text = tokenizer.decode(ids);
    words.push_back(first_word(std::string_view(text).substr(std::min(before, text.size()))));
  }
  return words;
}

std::vector<std::string> neutral_targets(const CausalLM& model, const Tokenizer& tokenizer,
                                         std::span<const EditRequest> requests,
                                         std::span<const std::string> old_answers, uint64_t seed) {
  const std::vector<std::string> subjects = made_up_subjects(seed, kMadeUpSubjects);
  std::vector<std::string> prompts;
  for (const EditRequest& request : requests) {
    if (request.subject.empty())
      throw ConfigError(cat("erase.target: auto: request ", request.id,
                            " has no subject that a made-up one could stand for: expected a text"));
    for (const std::string& subject : subjects) prompts.push_back(with_subject(request.prompt, subject));
  }
  const std::vector<std::string> words = first_words(model, tokenizer, prompts);
  std::vector<std::string> targets;
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::span<const std::string> of_request = std::span(words).subspan(i * subjects.size(), subjects.size());
    targets.push_back(commonest(of_request, tokenizer, requests[i], old_answers[i]));
    if (targets.back().empty())
      throw ConfigError(cat("erase.target: auto: request ", requests[i].id, ", prompt '", requests[i].prompt.text,
                            "': about ", subjects.size(), " made-up subjects the model says no word but the old ",
                            "answer, ", old_answers[i], ": expected a text"));
  }
  return targets;
}

}  // namespace lancet
