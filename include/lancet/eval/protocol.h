// A protocol: which questions it asks about a request, and which metrics it makes of the answers. To add one: a file in
// src/eval/protocols/ and a row in src/eval/protocols/protocol_table.cpp.
#pragma once

#include <cstddef>
#include <filesystem>
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
#include "lancet/spec/evaluate_spec.h"

namespace lancet {

class Protocol {
 public:
  virtual ~Protocol() = default;

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
};

/// Files of the CounterFact data set that metrics of `counterfact` need; empty: such a metric is left out.
struct CounterFactFiles {
  std::filesystem::path snippets;    ///< attribute_snippets.json
  std::filesystem::path idf;         ///< idf.npy; with `vocabulary` and `snippets`
  std::filesystem::path vocabulary;  ///< tfidf_vocab.json
};

/// How `chat` puts a prompt to an instruct model.
struct ChatSource {
  std::filesystem::path model;  ///< whose template it is, where none is given by hand
  std::string by_hand;          ///< template for ChatTemplate::by_hand; empty: the model's

  /// Throws: CheckpointError, TokenizerError, ConfigError.
  ChatTemplate find() const;
};

/// `evaluate:` of a job.
struct EvaluationOptions {
  std::vector<std::string> protocols;  ///< names in protocol_table(), in the order in which they are shown
  int64_t generated_tokens = *EvaluateSpec::kTokens.fallback;                 ///< length of greedy continuations
  std::string distractor = std::string(*EvaluateSpec::kDistractor.fallback);  ///< text before `distracted` prompts
  ChatSource chat_template = {};
  bool standing = EvaluateSpec::kStanding.fallback;  ///< earlier edits are measured too
  SideEffectOptions side_effects = {};
  CounterFactFiles counterfact = {};
  std::filesystem::path multihop_examples = {};  ///< text put before the questions of `mquake`; empty: none
};

struct ProtocolRow {
  std::string_view name;     ///< name in `evaluate:`
  std::string_view summary;  ///< one line for docs and messages
  std::unique_ptr<Protocol> (*make)(const EvaluationOptions& options);
  /// What it measures; a name that ends in '*' stands for all that begin so (one for each section of the records).
  std::span<const std::string_view> metrics;
  /// Metrics among them that are no shares: no threshold and no objective can be put on them.
  std::span<const std::string_view> no_shares = {};
};

std::span<const ProtocolRow> protocol_table();

/// The protocol that measures a metric; null when none does.
const ProtocolRow* find_protocol_of(std::string_view metric);

}  // namespace lancet
