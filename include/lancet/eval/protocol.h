// A protocol: the questions that it asks about a request, and the metrics that it computes from the answers. To add
// one, add a file in src/eval/protocols/ and a row in src/eval/protocols/protocol_table.cpp.
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

/// How a prompt about a subject is asked, and which part of the answer is used.
enum class AskedFor {
  kNextToken,      ///< the most likely token after the prompt
  kChatNextToken,  ///< the same, where the prompt begins the answer to a user's message
  kText,           ///< the greedy continuation of the prompt
  kChatText        ///< the greedy answer to the prompt as a user's message
};
/// Returns "next_token", "chat_next_token", "text", "chat_text".
std::string_view asked_for_name(AskedFor asked);

/// What a model says about a subject after a prompt that asks for a fact other than the edited one.
struct SubjectAnswer {
  AskedFor asked = AskedFor::kNextToken;
  std::string prompt;
  std::string text;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  /// Gets all requests before ask() is called for the first. They must outlive all calls of ask().
  virtual void see(std::span<const EditRequest> /*requests*/) {}

  /// Asks the questions of the next request and remembers their indices. Called for all requests in order.
  virtual void ask(const EditRequest& request, QuestionCollector& collector) = 0;

  /// Returns the metrics in display order. Called after ask() was called for all requests.
  virtual std::vector<MetricRow> metrics() const = 0;

  /// Returns the outcomes of one request; a metric that does not apply to it has none. `before`: the answers of the
  /// unedited model, or `now` again.
  virtual Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& before) const = 0;

  /// Adds the metrics that are computed from the totals of all requests.
  virtual void conclude(Tallies& /*totals*/) const {}

  /// Returns the index of the text that is shown for a request, if the protocol generates one. The first protocol with
  /// such a text decides.
  virtual std::optional<size_t> shown_text(size_t /*request*/) const { return std::nullopt; }

  /// Returns the index of the score of a request's target after its prompt. This score decides whether an edit
  /// succeeded.
  virtual std::optional<size_t> target_score(size_t /*request*/) const { return std::nullopt; }

  /// Returns what else the model says about the request's subject. The prompts and their order are the same before and
  /// after; there are texts only if some were generated.
  virtual std::vector<SubjectAnswer> subject_answers(size_t /*request*/, const ModelAnswers& /*now*/) const {
    return {};
  }

  /// Returns the judge that answers the protocol's questions to a judge; null: it asks none.
  virtual std::shared_ptr<AnswerJudge> judge_of_answers() const { return nullptr; }
};

struct ProtocolRow {
  std::string_view name;     ///< name in `evaluate:`
  std::string_view summary;  ///< one line for docs and messages
  std::unique_ptr<Protocol> (*make)(const EvaluationOptions& options);
  /// The names of its metrics, as is_metric_of() takes them: a '*' stands for one metric of each section of the
  /// records.
  std::span<const std::string_view> metrics;
  /// Those of its metrics that are not shares: they cannot have a threshold or be an objective.
  std::span<const std::string_view> no_shares = {};
  /// Whether its metrics compare with the unedited model's answers. Without these they have no outcome.
  bool compares = false;
};

std::span<const ProtocolRow> protocol_table();

/// Returns the protocols that need only one model.
std::vector<std::string> without_comparing(std::vector<std::string> protocols);

/// Returns the chat template. Throws: CheckpointError, TokenizerError, ConfigError.
ChatTemplate find_template(const ChatSource& source);

/// Returns the protocol that measures a metric; null if there is none.
const ProtocolRow* find_protocol_of(std::string_view metric);

}  // namespace lancet
