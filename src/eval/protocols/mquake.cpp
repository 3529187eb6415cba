// MQuAKE (arXiv 2305.14795): questions that need the edit and other facts. There is one outcome for each request that
// has such questions.
#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/text_metrics/answer_match.h"
#include "protocols.h"
#include "scored_probes.h"

namespace lancet {
namespace {

struct Question {
  size_t text = 0;
  std::vector<std::string> answers;
};

/// Whether the text after one of the questions contains one of its answers; nullopt: no text was generated.
std::optional<double> any_answered(std::span<const Question> questions, const ModelAnswers& now,
                                   bool (*holds)(std::string_view, std::span<const std::string>)) {
  std::optional<double> outcome;
  for (const Question& question : questions) {
    const std::optional<GeneratedText>& text = now.texts[question.text];
    if (!text) return std::nullopt;
    outcome = std::max(outcome.value_or(0), holds(text->continuation, question.answers) ? 1.0 : 0.0);
  }
  return outcome;
}

class MquakeProtocol : public Protocol {
 public:
  /// `examples`: answered questions to put before each; empty: none.
  MquakeProtocol(int64_t tokens, std::string examples) : tokens_(tokens), examples_(std::move(examples)) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    RequestQuestions asked;
    for (const Probe& question : request.multihop) {
      if (question.answers.empty()) continue;
      asked.bare.push_back({collector.generate(question.prompt, tokens_), question.answers});
      if (examples_.empty()) continue;
      const std::string prompt = cat(examples_, "\nQ: ", question.prompt, " A:");
      asked.after_examples.push_back({collector.generate(prompt, tokens_), question.answers});
    }
    asked.scores = ask_probes(collector, request.multihop);
    requests_.push_back(std::move(asked));
  }

  std::vector<MetricRow> metrics() const override {
    const std::string which =
        cat("share of requests with at least one multi-hop question whose greedy continuation (at most ", tokens_,
            " tokens, to EOS");
    std::vector<MetricRow> rows{
        {"mquake_multihop", "mquake",
         which + ", no examples before it) contains the new answer or one of its other names"},
        {"mquake_multihop_acc", "mquake",
         "share of the new answer's tokens that are the likeliest in their places after the multi-hop questions "
         "(teacher-forced), mean over the questions of a request"}};
    if (!examples_.empty())
      rows.push_back({"mquake_multihop_examples", "mquake",
                      cat("MQuAKE: ", which,
                          ") after the given examples is, up to the first full stop or line break, the new answer or "
                          "one of its other names")});
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const RequestQuestions& asked = requests_[request];
    Tallies tallies;
    add_outcome(tallies["mquake_multihop_acc"], mean_token_match(asked.scores, now));
    add_outcome(tallies["mquake_multihop"], any_answered(asked.bare, now, contains));
    if (!examples_.empty())
      add_outcome(tallies["mquake_multihop_examples"], any_answered(asked.after_examples, now, is_exactly));
    return tallies;
  }

 private:
  struct RequestQuestions {
    std::vector<Question> bare, after_examples;
    std::vector<size_t> scores;
  };

  int64_t tokens_ = 0;
  std::string examples_;
  std::vector<RequestQuestions> requests_;
};

}  // namespace

std::unique_ptr<Protocol> make_mquake(const EvaluationOptions& options) {
  std::string examples;
  if (!options.multihop_examples.empty())
    examples = read_text_file(options.multihop_examples, "evaluate.mquake.examples");
  while (!examples.empty() && examples.back() == '\n') examples.pop_back();
  return std::make_unique<MquakeProtocol>(options.generated_tokens, std::move(examples));
}

}  // namespace lancet
