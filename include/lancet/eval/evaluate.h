// How well requests hold on a model's weights as they are.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/edit/request.h"
#include "lancet/eval/metrics.h"
#include "lancet/eval/scoring.h"
#include "lancet/models/generate.h"

namespace lancet {

struct EvaluationOptions {
  std::set<MetricGroup> groups;
  int64_t continuation_tokens = 12;  ///< of the greedy continuation that `generation` shows
};

/// How much an evaluation runs.
struct EvaluationSize {
  int64_t scored_tokens = 0;      ///< of all rows, padded to the longest
  int64_t scored_row_tokens = 0;  ///< of the longest row
  int64_t labels = 0;             ///< tokens whose probability is read
  GenerationSize generation;
};

struct Evaluation {
  std::vector<Tallies> requests;
  std::vector<std::string> continuations;  ///< greedy, per request; empty unless `generation` was asked for
  Tallies totals;                          ///< over all requests' prompts
};

/// The requests' texts as ids, made once: before/after are measured on the same rows.
class EvaluationPlan {
 public:
  /// Throws: ConfigError listing every request with a prompt and target that do not split into tokens (text/prompt.h).
  EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests, EvaluationOptions options);

  EvaluationSize size() const;

  /// The scores of some requests alone, in their order, without continuations: nothing is tokenised again.
  EvaluationPlan scores_of(std::span<const int64_t> requests) const;

  /// Collective: all ranks get the same. `stage` is what the progress shows: "evaluate before".
  Evaluation run(const CausalLM& model, const std::string& stage, Communicator& communicator) const;

 private:
  EvaluationPlan(const Tokenizer& tokenizer, EvaluationOptions options, size_t n_requests)
      : tokenizer_(tokenizer), options_(std::move(options)), n_requests_(n_requests) {}

  /// One prompt of one request: indices of its scores with the new and the true target.
  struct Probe {
    size_t request = 0;
    MetricGroup group = MetricGroup::kEfficacy;
    std::optional<size_t> target_new;
    std::optional<size_t> target_true;  ///< nullopt: the request names none
  };
  std::vector<std::string> continue_prompts(const CausalLM& model, const std::string& stage,
                                            Communicator& communicator) const;
  void add_probe(size_t request, const EditRequest& texts, MetricGroup group, const std::string& prompt);

  const Tokenizer& tokenizer_;
  EvaluationOptions options_;
  size_t n_requests_;
  std::vector<Probe> probes_;
  std::vector<Continuation> continuations_;
  std::vector<std::vector<TokenId>> prompts_;  ///< of the requests, for generation
};

}  // namespace lancet
