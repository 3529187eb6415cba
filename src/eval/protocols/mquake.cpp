// MQuAKE (arXiv 2305.14795): questions that need the edit and other facts. One outcome for each request that has some.
#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/eval/answer_match.h"
#include "protocols.h"
#include "scored_probes.h"

namespace lancet {
namespace {

class MquakeProtocol : public Protocol {
 public:
  explicit MquakeProtocol(int64_t tokens) : tokens_(tokens) {}

  void ask(const EditRequest& request, Asker& asker) override {
    AskedRequest asked;
    for (const Probe& question : request.multihop)
      if (!question.answers.empty())
        asked.questions.push_back({asker.generate(question.prompt, tokens_), question.answers});
    asked.scores = ask_probes(asker, request.multihop);
    requests_.push_back(std::move(asked));
  }

  std::vector<MetricRow> metrics() const override {
    return {{"mquake_multihop", "mquake",
             cat("MQuAKE: share of requests with at least one multi-hop question whose greedy continuation (at most ",
                 tokens_, " tokens, to EOS, no examples before it) contains the new answer or one of its other names")},
            {"mquake_multihop_acc", "mquake",
             "share of the new answer's tokens that are the likeliest in their places behind the multi-hop questions "
             "(teacher-forced), mean over the questions of a request"}};
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const AskedRequest& asked = requests_[request];
    Tallies tallies;
    add_outcome(tallies["mquake_multihop_acc"], mean_token_match(asked.scores, now));
    const auto is_written = [&](const Question& question) { return now.texts[question.text].has_value(); };
    if (!asked.questions.empty() && std::all_of(asked.questions.begin(), asked.questions.end(), is_written))
      tallies["mquake_multihop"].add(
          std::any_of(asked.questions.begin(), asked.questions.end(), [&](const Question& question) {
            return contains(now.texts[question.text]->continuation, question.answers);
          }));
    return tallies;
  }

 private:
  struct Question {
    size_t text = 0;
    std::vector<std::string> answers;
  };
  struct AskedRequest {
    std::vector<Question> questions;
    std::vector<size_t> scores;
  };

  int64_t tokens_ = 0;
  std::vector<AskedRequest> requests_;
};

}  // namespace

std::unique_ptr<Protocol> make_mquake(const EvaluationOptions& options) {
  return std::make_unique<MquakeProtocol>(options.generated_tokens);
}

}  // namespace lancet
