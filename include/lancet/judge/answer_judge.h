// Who says whether a text that a model wrote states the answer it shall: a program or a server that the user names.
// What it says is remembered, so that nothing is judged twice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/spec/judge_options.h"

namespace lancet {

/// An answer, and what it shall state.
struct JudgedAnswer {
  std::string prompt;                ///< what the model was given
  std::string answer;                ///< what it wrote
  std::string target;                ///< what the answer shall state
  std::vector<std::string> aliases;  ///< other names of the target
};

/// The question of a judge: text with places for what is judged.
class JudgePrompt {
 public:
  /// Throws: ConfigError that begins with `where` for text without {target} or {answer}.
  JudgePrompt(std::string text, const std::string& where);

  /// Nothing in what is put into the places is a place itself.
  std::string fill(const JudgedAnswer& judged) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What somebody means who was asked for yes or no: the first word after a model's thoughts decides.
JudgeVerdict verdict_in(std::string_view words);

/// Puts one question; a judge that gives no answer is a ServerError.
class JudgeLine {
 public:
  virtual ~JudgeLine() = default;
  /// Returns the judge's words. `question`: the filled prompt.
  virtual std::string ask(const JudgedAnswer& judged, const std::string& question) = 0;
};

std::unique_ptr<JudgeLine> make_command_line(const JudgeOptions& options);
/// Throws: ConfigError for an address that is none, for another machine's where that was not allowed, where
/// LANCET_OFFLINE is set, and for a token that cannot be sent.
std::unique_ptr<JudgeLine> make_server_line(const JudgeOptions& options);

class AnswerJudge {
 public:
  /// Reads the prompt. Throws: ConfigError.
  explicit AnswerJudge(const JudgeOptions& options);
  AnswerJudge(const JudgeOptions& options, std::unique_ptr<JudgeLine> line);

  /// "judge-7b at http://127.0.0.1:8000/v1 (prompt 0f3a...)": who judges, and a hash of the prompt.
  const std::string& name() const { return name_; }

  /// Words other than yes and no are unclear. A question without an answer is put a second time; then it is unclear
  /// too, with a warning, if the judge has answered any before. Three of these in a row, and the rest is not asked.
  /// Throws: ServerError where the judge never answered.
  std::vector<JudgeVerdict> judge(std::span<const JudgedAnswer> answers);

 private:
  struct Failures {
    size_t all = 0, in_row = 0;
    std::string last;
  };

  JudgeVerdict judge_one(const JudgedAnswer& judged, Failures& failures);

  JudgePrompt prompt_;
  std::string name_;
  std::shared_ptr<VerdictMemory> memory_;
  std::unique_ptr<JudgeLine> line_;
};

}  // namespace lancet
