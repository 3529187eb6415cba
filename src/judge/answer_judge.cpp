#include "lancet/judge/answer_judge.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lancet/core/built_in_file.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/http/http_client.h"
#include "lancet/io/files.h"

namespace lancet {

std::span<const BuiltInFile> judge_files();  // made by CMake

namespace {

constexpr std::string_view kTarget = "{target}", kAnswer = "{answer}", kPromptPlace = "{prompt}",
                           kAliases = "{aliases}";
constexpr std::string_view kEndOfThoughts = "</think>";
constexpr std::string_view kBuiltInPrompt = "prompt.txt";
constexpr size_t kTries = 2;
constexpr size_t kMostInRow = 3;  ///< questions without an answer, after which a judge is given up

JudgePrompt open_prompt(const std::filesystem::path& file) {
  if (!file.empty())
    return {read_text_file(file, "evaluate.judge.prompt"), cat("evaluate.judge.prompt: ", file.string())};
  for (const BuiltInFile& built_in : judge_files())
    if (built_in.name == kBuiltInPrompt) return {std::string(built_in.text), std::string(built_in.name)};
  throw Error(ExitCode::kInternal, "the prompt of judges is not in the program");
}

std::string judge_name(const JudgeOptions& options, const JudgePrompt& prompt) {
  const std::string who =
      options.command.empty() ? cat(options.model, " at ", options.url) : cat("'", join(options.command, " "), "'");
  return cat(who, " (prompt ", ContentHash().add(prompt.text()).hex(), ")");
}

std::unique_ptr<JudgeLine> make_line(const JudgeOptions& options) {
  return options.command.empty() ? make_server_line(options) : make_command_line(options);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

JudgePrompt::JudgePrompt(std::string text, const std::string& where) : text_(std::move(text)) {
  for (const std::string_view place : {kTarget, kAnswer})
    if (text_.find(place) == std::string::npos)
      throw ConfigError(cat(where, ": expected text with ", kTarget, " and ", kAnswer, ", got none with ", place));
}

std::string JudgePrompt::fill(const JudgedAnswer& judged) const {
  const std::string aliases = judged.aliases.empty() ? "(none are known)" : join(judged.aliases);
  const std::array<std::pair<std::string_view, const std::string*>, 4> places{
      {{kTarget, &judged.target}, {kAnswer, &judged.answer}, {kPromptPlace, &judged.prompt}, {kAliases, &aliases}}};
  std::string filled;
  for (size_t at = 0; at < text_.size();) {
    const auto place = std::find_if(places.begin(), places.end(), [&](const auto& one) {
      return text_.compare(at, one.first.size(), one.first) == 0;
    });
    if (place == places.end()) {
      filled += text_[at++];
    } else {
      filled += *place->second;
      at += place->first.size();
    }
  }
  return filled;
}

JudgeVerdict verdict_in(std::string_view words) {
  if (const size_t end = words.rfind(kEndOfThoughts); end != std::string_view::npos)
    words.remove_prefix(end + kEndOfThoughts.size());
  const auto begin = std::find_if(words.begin(), words.end(), is_letter);
  std::string word(begin, std::find_if_not(begin, words.end(), is_letter));
  std::transform(word.begin(), word.end(), word.begin(), [](char c) { return static_cast<char>(c | ' '); });
  return word == "yes" ? JudgeVerdict::kYes : word == "no" ? JudgeVerdict::kNo : JudgeVerdict::kUnclear;
}

AnswerJudge::AnswerJudge(const JudgeOptions& options) : AnswerJudge(options, make_line(options)) {}

AnswerJudge::AnswerJudge(const JudgeOptions& options, std::unique_ptr<JudgeLine> line)
    : prompt_(open_prompt(options.prompt)),
      name_(judge_name(options, prompt_)),
      memory_(options.memory),
      line_(std::move(line)) {}

JudgeVerdict AnswerJudge::judge_one(const JudgedAnswer& judged, Failures& failures) {
  const std::string question = prompt_.fill(judged);
  ContentHash hash;
  hash.add(name_).add(question).add(judged.prompt).add(judged.answer).add(judged.target);
  for (const std::string& alias : judged.aliases) hash.add(alias);
  const std::string key = hash.hex();
  if (const std::optional<JudgeVerdict> known = memory_->find(key)) return *known;
  for (size_t tries = 0; tries < kTries && failures.in_row < kMostInRow; ++tries) {
    try {
      const JudgeVerdict verdict = verdict_in(line_->ask(judged, question));
      memory_->keep(key, verdict);
      failures.in_row = 0;
      return verdict;
    } catch (const ServerError& error) {
      if (memory_->is_empty() && tries + 1 == kTries)
        throw ServerError(cat("evaluate.judge: ", error.what(), ": expected an answer, yes or no"));
      failures.last = error.what();
    }
  }
  ++failures.all;
  ++failures.in_row;
  return JudgeVerdict::kUnclear;
}

std::vector<JudgeVerdict> AnswerJudge::judge(std::span<const JudgedAnswer> answers) {
  std::vector<JudgeVerdict> verdicts;
  Failures failures;
  Progress progress("judge", static_cast<int64_t>(answers.size()), "answers");
  for (const JudgedAnswer& judged : answers) {
    verdicts.push_back(judge_one(judged, failures));
    progress.advance();
  }
  if (failures.all > 0)
    log_warning(
        cat("evaluate.judge: ", counted(failures.all, "answer"), " of ", count_text(answers.size()),
            " got no verdict and count as unclear",
            failures.in_row >= kMostInRow ? cat("; after ", kMostInRow, " in a row the judge was given up") : "", ": ",
            failures.last));
  return verdicts;
}

}  // namespace lancet
