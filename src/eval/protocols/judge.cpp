// Free generation, judged by a program or a server of the user's: it says whether the greedy continuation states the
// new target, in any words.
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "protocols.h"

namespace lancet {
namespace {

class JudgeProtocol final : public Protocol {
 public:
  JudgeProtocol(std::shared_ptr<AnswerJudge> judge, int64_t tokens) : judge_(std::move(judge)), tokens_(tokens) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    const size_t text = collector.generate(request.prompt.text, tokens_);
    texts_.push_back(text);
    verdicts_.push_back(
        collector.judge({text, {request.prompt.text, {}, request.target, request.target_aliases}}, judge_->name()));
  }

  std::vector<MetricRow> metrics() const override {
    const std::string what = cat(" edited prompts whose greedy continuation (at most ", tokens_, " tokens, to EOS) ");
    return {{"generation_judged", "judge",
             cat("share, of those judged, of", what, "states the new target, says ", judge_->name())},
            {"generation_judged_unclear", "judge", cat("share of", what, "got neither yes nor no of the judge"),
             Unit::kShare, Better::kLower}};
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const std::optional<JudgeVerdict> verdict = now.verdicts.empty() ? std::nullopt : now.verdicts[verdicts_[request]];
    if (!verdict) return {};
    Tallies tallies;
    if (*verdict != JudgeVerdict::kUnclear) tallies["generation_judged"].add(*verdict == JudgeVerdict::kYes ? 1 : 0);
    tallies["generation_judged_unclear"].add(*verdict == JudgeVerdict::kUnclear ? 1 : 0);
    return tallies;
  }

  std::optional<size_t> shown_text(size_t request) const override { return texts_[request]; }
  std::shared_ptr<AnswerJudge> judge_of_answers() const override { return judge_; }

 private:
  std::shared_ptr<AnswerJudge> judge_;
  int64_t tokens_;
  std::vector<size_t> texts_, verdicts_;  ///< indices for each request
};

}  // namespace

std::unique_ptr<Protocol> make_judge(const EvaluationOptions& options) {
  if (!options.judge)
    throw ConfigError("evaluate: judge: expected a program or a server that judges (evaluate.judge), got none");
  return std::make_unique<JudgeProtocol>(std::make_shared<AnswerJudge>(*options.judge), options.generated_tokens);
}

}  // namespace lancet
