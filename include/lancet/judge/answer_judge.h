// Decides whether a text that a model wrote states the expected answer. The judge is a program or a server that the
// user names. Verdicts are cached, so that nothing is judged twice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/spec/judge_options.h"

namespace lancet {

/// An answer, and what it should state.
struct JudgedAnswer {
  std::string prompt;                ///< the model's prompt
  std::string answer;                ///< the text that the model wrote
  std::string target;                ///< what the answer should state
  std::vector<std::string> aliases;  ///< other names of the target
};

/// The question to a judge: a text with placeholders for what is judged.
class JudgePrompt {
 public:
  /// Throws: ConfigError that begins with `where` for a text without {target} or {answer}.
  JudgePrompt(std::string text, const std::string& where);

  /// Returns the question with all placeholders filled. Placeholders within the inserted texts are not filled.
  std::string fill(const JudgedAnswer& judged) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Returns the verdict in an answer to a yes-or-no question. The first word after a model's thoughts decides.
JudgeVerdict verdict_in(std::string_view words);

/// Asks a judge one question. Throws ServerError if the judge gives no answer.
class JudgeLine {
 public:
  virtual ~JudgeLine() = default;
  /// Returns the judge's answer. `question`: the filled prompt.
  virtual std::string ask(const JudgedAnswer& judged, const std::string& question) = 0;
};

std::unique_ptr<JudgeLine> make_command_line(const JudgeOptions& options);
/// Throws: ConfigError for an invalid address, for another machine's address if that was not allowed or if
/// LANCET_OFFLINE is set, and for a token that cannot be sent.
std::unique_ptr<JudgeLine> make_server_line(const JudgeOptions& options);

class AnswerJudge {
 public:
  /// Reads the prompt. Throws: ConfigError.
  explicit AnswerJudge(const JudgeOptions& options);
  AnswerJudge(const JudgeOptions& options, std::unique_ptr<JudgeLine> line);

  /// Returns "judge-7b at http://127.0.0.1:8000/v1 (prompt 0f3a...)": the judge, and a hash of the prompt.
  const std::string& name() const { return name_; }

  /// Returns the verdicts. Answers other than yes and no count as unclear; a warning shows the first if most are. If
  /// the judge does not answer, the question is asked a second time. If that fails too, it counts as unclear, with a
  /// warning, provided that the judge has ever answered. After three such questions in a row the rest is not asked.
  /// Throws: ServerError if the judge has never answered.
  std::vector<JudgeVerdict> judge(std::span<const JudgedAnswer> answers);

 private:
  struct Failures {
    size_t all = 0, in_row = 0;
    std::string last;
  };

  /// Answers that are neither yes nor no.
  struct Unclear {
    size_t all = 0;
    std::string first;
  };

  JudgeVerdict judge_one(const JudgedAnswer& judged, Failures& failures, Unclear& unclear);

  JudgePrompt prompt_;
  std::string name_;
  std::shared_ptr<VerdictMemory> memory_;
  std::unique_ptr<JudgeLine> line_;
};

}  // namespace lancet
