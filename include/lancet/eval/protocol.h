// A protocol: which questions it asks about a request, and which metrics it makes of the answers. To add one: a file in
// src/eval/protocols/ and a row in src/eval/protocols/protocol_table.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/eval/metrics.h"
#include "lancet/eval/questions.h"
#include "lancet/eval/side_effects.h"
#include "lancet/requests/request.h"
#include "lancet/spec/evaluation_options.h"

namespace lancet {

/// How a prompt about a subject is put, and which part of the answer is looked at.
enum class AskedFor {
  kNextToken,      ///< the likeliest token after the prompt
  kChatNextToken,  ///< the same where the prompt begins the answer to a user's message
  kText,           ///< the greedy continuation of the prompt
  kChatText        ///< the greedy answer to the prompt as a user's message
};
/// "next_token", "chat_next_token", "text", "chat_text"
std::string_view asked_for_name(AskedFor asked);

/// What a model says about a subject after a prompt that asks for another fact than the edited one.
struct SubjectAnswer {
  AskedFor asked = AskedFor::kNextToken;
  std::string prompt;
  std::string text;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  /// All requests that will be asked about, before the first is; they outlive the protocol's asking.
  virtual void see(std::span<const EditRequest> /*requests*/) {}

  /// The questions of the next request; the protocol remembers where they stand. Called for all requests in order.
  virtual void ask(const EditRequest& request, QuestionCollector& collector) = 0;

  /// What is measured, in the order in which it is shown; after all requests have been asked about.
  virtual std::vector<MetricRow> metrics() const = 0;

  /// The outcomes of one request; a metric that cannot be said of it has none. `before`: the answers of the unedited
  /// model, or `now` again.
  virtual Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& before) const = 0;

  /// Adds what is made of the totals of all requests.
  virtual void conclude(Tallies& /*totals*/) const {}

  /// The index of the text that is shown for a request, where the protocol generates one; the first protocol's is.
  virtual std::optional<size_t> shown_text(size_t /*request*/) const { return std::nullopt; }

  /// The index of the score of a request's target after its prompt, by which it is judged whether an edit took.
  virtual std::optional<size_t> target_score(size_t /*request*/) const { return std::nullopt; }

  /// What the model says about the request's subject otherwise: the same prompts in the same order before and after,
  /// but texts only where some were generated.
  virtual std::vector<SubjectAnswer> subject_answers(size_t /*request*/, const ModelAnswers& /*now*/) const {
    return {};
  }

  /// Whoever answers the questions that it puts to a judge; null: it puts none.
  virtual std::shared_ptr<AnswerJudge> judge_of_answers() const { return nullptr; }
};

struct ProtocolRow {
  std::string_view name;     ///< name in `evaluate:`
  std::string_view summary;  ///< one line for docs and messages
  std::unique_ptr<Protocol> (*make)(const EvaluationOptions& options);
  /// What it measures, as is_metric_of() takes it: a '*' stands for one metric of each section of the records.
  std::span<const std::string_view> metrics;
  /// Metrics among them that are no shares: no threshold and no objective can be put on them.
  std::span<const std::string_view> no_shares = {};
  /// Its metrics compare with the unedited model's answers, and have no outcome where there are none.
  bool compares = false;
};

std::span<const ProtocolRow> protocol_table();

/// Those of the protocols that say something of one model alone.
std::vector<std::string> without_comparing(std::vector<std::string> protocols);

/// Throws: CheckpointError, TokenizerError, ConfigError.
ChatTemplate find_template(const ChatSource& source);

/// The protocol that measures a metric; null when none does.
const ProtocolRow* find_protocol_of(std::string_view metric);

}  // namespace lancet
