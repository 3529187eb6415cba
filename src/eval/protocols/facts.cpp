// Efficacy, paraphrase, specificity: the CounterFact protocol's comparison of the new with the true target (arXiv
// 2202.05262, section 3.4), in which every prompt counts once; also strict teacher-forced accuracy. For paraphrases
// there is the accuracy of the true target, too: before an edit it says how many of them the model can answer at all.
#include <utility>

#include "protocols.h"

namespace lancet {
namespace {

/// The target that should be the likelier one.
enum class Wanted { kNew, kTrue };

struct FactKind {
  std::vector<MetricRow> metrics;  ///< *_prob, *_argmax
  Wanted wanted = Wanted::kNew;
  std::vector<std::string> (*prompts)(const EditRequest& request) = nullptr;
  bool is_edited = false;             ///< the only prompt is the request's own
  std::optional<MetricRow> old = {};  ///< *_old, if the records have true targets
};

class FactProtocol : public Protocol {
 public:
  explicit FactProtocol(FactKind kind) : kind_(std::move(kind)) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    std::vector<Pair>& pairs = pairs_.emplace_back();
    for (const std::string& prompt : kind_.prompts(request)) {
      Pair pair{collector.score(prompt, request.target), {}};
      if (request.target_true) pair.other = collector.score(prompt, *request.target_true);
      knows_old_ = knows_old_ || pair.other;
      if (kind_.wanted == Wanted::kTrue) std::swap(pair.wanted, pair.other);
      pairs.push_back(pair);
    }
  }

  std::vector<MetricRow> metrics() const override {
    std::vector<MetricRow> rows = kind_.metrics;
    if (kind_.old && knows_old_) rows.push_back(*kind_.old);
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    Tally prob, argmax, old;
    for (const Pair& pair : pairs_[request]) {
      if (!pair.wanted) continue;
      const TargetAnswer& wanted = *now.scores[*pair.wanted];
      argmax.add(wanted.is_right() ? 1 : 0);
      if (!pair.other) continue;
      const TargetAnswer& other = *now.scores[*pair.other];
      prob.add(wanted.nll < other.nll ? 1 : 0);
      old.add(other.is_right() ? 1 : 0);
    }
    Tallies tallies{{kind_.metrics[0].name, prob}, {kind_.metrics[1].name, argmax}};
    if (kind_.old && knows_old_) tallies.emplace(kind_.old->name, old);
    return tallies;
  }

  std::optional<size_t> target_score(size_t request) const override {
    return kind_.is_edited ? pairs_[request].front().wanted : std::nullopt;
  }

 private:
  /// The scores of two targets after one prompt; nullopt: the request has no true target.
  struct Pair {
    std::optional<size_t> wanted;
    std::optional<size_t> other;
  };

  FactKind kind_;
  bool knows_old_ = false;                ///< whether a record with prompts of this kind has a true target
  std::vector<std::vector<Pair>> pairs_;  ///< the pairs of each request
};

std::unique_ptr<Protocol> make_facts(FactKind kind) { return std::make_unique<FactProtocol>(std::move(kind)); }

}  // namespace

std::unique_ptr<Protocol> make_efficacy(const EvaluationOptions& /*options*/) {
  return make_facts(
      {{{"efficacy_prob", "efficacy",
         "CounterFact ES: share of edited prompts after which the new target is likelier than the true one (mean "
         "token log-probability, strict)"},
        {"efficacy_argmax", "efficacy",
         "share of edited prompts after which every token of the new target is the likeliest in its place "
         "(teacher-forced)"}},
       Wanted::kNew,
       [](const EditRequest& request) { return std::vector{request.prompt.text}; },
       /*is_edited=*/true});
}

std::unique_ptr<Protocol> make_paraphrase(const EvaluationOptions& /*options*/) {
  return make_facts(
      {.metrics = {{"paraphrase_prob", "paraphrase",
                    "CounterFact PS: as efficacy_prob, over all paraphrases of all requests"},
                   {"paraphrase_argmax", "paraphrase", "as efficacy_argmax, over all paraphrases of all requests"}},
       .wanted = Wanted::kNew,
       .prompts = [](const EditRequest& request) { return request.paraphrases; },
       .old =
           MetricRow{"paraphrase_old", "paraphrase",
                     "share of paraphrases after which every token of the true target is the likeliest in its place: "
                     "before the edit, how many of them the model answers as the record says, which "
                     "paraphrase_argmax can hardly exceed",
                     Unit::kShare, Better::kLower}});
}

std::unique_ptr<Protocol> make_specificity(const EvaluationOptions& /*options*/) {
  return make_facts({{{"specificity_prob", "specificity",
                       "CounterFact NS: share of prompts about other subjects, of all requests, after which the true "
                       "target stays likelier than the new one"},
                      {"specificity_argmax", "specificity",
                       "share of prompts about other subjects, of all requests, after which every token of the true "
                       "target is the likeliest in its place"}},
                     Wanted::kTrue,
                     [](const EditRequest& request) { return request.neighborhood; }});
}

}  // namespace lancet
