// zsRE as memit's code measures it, and UltraEdit (arXiv 2505.14679): the share of the answer's tokens that are the
// likeliest ones at their positions, given the answer's earlier tokens. The two differ in what one outcome is.
#include <array>
#include <utility>

#include "protocols.h"
#include "scored_probes.h"

namespace lancet {
namespace {

enum class Outcomes {
  kPerRequest,  ///< one outcome for each request: the share of all tokens of its prompts
  kPerPrompt
};

struct TokenAccuracyKind {
  std::vector<MetricRow> metrics;  ///< metrics of the edited prompt, of paraphrases, of locality
  Outcomes outcomes = Outcomes::kPerPrompt;
};

class TokenAccuracyProtocol : public Protocol {
 public:
  explicit TokenAccuracyProtocol(TokenAccuracyKind kind) : kind_(std::move(kind)) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    std::array<std::vector<size_t>, 3>& scores = scores_.emplace_back();
    scores[0] = {collector.score(request.prompt.text, request.target)};
    scores[1] = ask_probes(collector, probes_of(request.paraphrases, request.target));
    for (const ProbeSection& section : locality_sections(request))
      for (const size_t score : ask_probes(collector, section.probes)) scores[2].push_back(score);
  }

  std::vector<MetricRow> metrics() const override { return kind_.metrics; }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    Tallies tallies;
    for (size_t i = 0; i < kind_.metrics.size(); ++i) {
      Tally tokens, prompts;
      for (const size_t score : scores_[request][i]) {
        const TargetAnswer& answer = *now.scores[score];
        prompts.add(answer.share_right());
        tokens.sum += static_cast<double>(answer.n_right);
        tokens.count += static_cast<int64_t>(answer.argmax.size());
      }
      Tally& tally = tallies[kind_.metrics[i].name];
      if (kind_.outcomes == Outcomes::kPerPrompt)
        tally = prompts;
      else
        add_outcome(tally, tokens.mean());
    }
    return tallies;
  }

 private:
  TokenAccuracyKind kind_;
  std::vector<std::array<std::vector<size_t>, 3>> scores_;  ///< scores of each request, for each metric
};

}  // namespace

std::unique_ptr<Protocol> make_zsre(const EvaluationOptions& /*options*/) {
  return std::make_unique<TokenAccuracyProtocol>(TokenAccuracyKind{
      {{"zsre_efficacy", "zsre",
        "zsRE (memit): share of the target's tokens that are the likeliest in their places after the edited prompt "
        "(teacher-forced), mean over requests"},
       {"zsre_paraphrase", "zsre", "zsRE (memit): as zsre_efficacy, over the tokens of all paraphrases of a request"},
       {"zsre_locality", "zsre",
        "zsRE (memit): share of the given answers' tokens that are the likeliest in their places after the prompts of "
        "other facts, mean over requests; against the given answer, not against the unedited model"}},
      Outcomes::kPerRequest});
}

std::unique_ptr<Protocol> make_ultraedit(const EvaluationOptions& /*options*/) {
  return std::make_unique<TokenAccuracyProtocol>(TokenAccuracyKind{
      {{"ultraedit_efficacy", "ultraedit",
        "UltraEdit ES: share of the target's tokens that are the likeliest in their places after the edited prompt "
        "(teacher-forced), mean over prompts"},
       {"ultraedit_generalization", "ultraedit", "UltraEdit GS: as ultraedit_efficacy, over paraphrases"},
       {"ultraedit_specificity", "ultraedit",
        "UltraEdit LS: the same share of the given answers after the prompts of other facts, mean over prompts"}},
      Outcomes::kPerPrompt});
}

}  // namespace lancet
