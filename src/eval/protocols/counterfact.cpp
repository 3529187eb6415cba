// CounterFact as ROME and MEMIT published it (arXiv 2202.05262, 2210.07229, and memit's code): each request's prompts
// are averaged first, so that every request counts once.
#include <array>
#include <cmath>
#include <utility>

#include "counterfact_texts.h"
#include "lancet/core/strings.h"
#include "protocols.h"
#include "scored_probes.h"

namespace lancet {
namespace {

/// The names of the metrics for one kind of prompt.
struct GroupNames {
  std::string_view success, accuracy, magnitude;
  std::string_view prompts;  ///< name of the prompts in explanations
};
constexpr std::array<GroupNames, 3> kGroups{
    {{"counterfact_es", "counterfact_es_acc", "counterfact_em", "the edited prompt"},
     {"counterfact_ps", "counterfact_ps_acc", "counterfact_pm", "the paraphrases"},
     {"counterfact_ns", "counterfact_ns_acc", "counterfact_nm", "prompts about other subjects"}}};
constexpr size_t kNeighborhood = 2;  // here the true target should stay

/// The scores of two targets after one prompt; nullopt: the request has no true target.
struct AskedPair {
  std::optional<size_t> wanted, other;
};
using QuestionGroups = std::array<std::vector<AskedPair>, kGroups.size()>;

double probability(double nll) { return std::exp(-nll); }

class CounterFactProtocol : public Protocol {
 public:
  explicit CounterFactProtocol(const CounterFactFiles& files) : texts_(files) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    QuestionGroups& asked = requests_.emplace_back();
    const std::vector<std::string> edited{request.prompt.text};
    const std::array<const std::vector<std::string>*, kGroups.size()> prompts{&edited, &request.paraphrases,
                                                                              &request.neighborhood};
    for (size_t group = 0; group < kGroups.size(); ++group) {
      for (const std::string& prompt : *prompts[group]) {
        AskedPair pair{collector.score(prompt, request.target), {}};
        if (request.target_true) pair.other = collector.score(prompt, *request.target_true);
        if (group == kNeighborhood) std::swap(pair.wanted, pair.other);
        asked[group].push_back(pair);
      }
    }
    texts_.ask(request, collector);
  }

  std::vector<MetricRow> metrics() const override {
    std::vector<MetricRow> rows;
    for (size_t group = 0; group < kGroups.size(); ++group) {
      const GroupNames& names = kGroups[group];
      const std::string wanted = group == kNeighborhood ? "the true target" : "the new target";
      const std::string other = group == kNeighborhood ? "the new one" : "the true one";
      const std::string where = cat(" after ", names.prompts, ", mean over requests of their mean");
      rows.push_back(
          {std::string(names.success), "counterfact",
           cat("CounterFact: ", wanted, " is likelier than ", other, " (mean token log-probability, strict)", where)});
      rows.push_back(
          {std::string(names.accuracy), "counterfact",
           cat("CounterFact: every token of ", wanted, " is the likeliest in its place (teacher-forced)", where)});
      rows.push_back({std::string(names.magnitude), "counterfact",
                      cat("CounterFact: probability of ", wanted, " less that of ", other,
                          " (geometric means of their tokens')", where),
                      Unit::kDifference});
    }
    rows.push_back({"counterfact_score", "counterfact",
                    "CounterFact S: harmonic mean of counterfact_es, counterfact_ps and counterfact_ns"});
    texts_.add_metrics(rows);
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    Tallies tallies;
    for (size_t group = 0; group < kGroups.size(); ++group) {
      Tally success, accuracy, magnitude;
      for (const AskedPair& pair : requests_[request][group]) {
        if (!pair.wanted) continue;
        const TargetAnswer& wanted = *now.scores[*pair.wanted];
        accuracy.add(wanted.is_right() ? 1 : 0);
        if (!pair.other) continue;
        const TargetAnswer& other = *now.scores[*pair.other];
        success.add(wanted.nll < other.nll ? 1 : 0);
        magnitude.add(probability(wanted.nll) - probability(other.nll));
      }
      add_outcome(tallies[std::string(kGroups[group].success)], success.mean());
      add_outcome(tallies[std::string(kGroups[group].accuracy)], accuracy.mean());
      add_outcome(tallies[std::string(kGroups[group].magnitude)], magnitude.mean());
    }
    texts_.judge(request, now, tallies);
    return tallies;
  }

  void conclude(Tallies& totals) const override {
    double inverse = 0;
    for (const GroupNames& names : kGroups) {
      const std::optional<double> mean = totals.find(names.success)->second.mean();
      if (!mean) return;
      inverse += 1 / *mean;  // infinite for a mean of 0: the harmonic mean is then 0
    }
    totals["counterfact_score"].add(static_cast<double>(kGroups.size()) / inverse);
  }

 private:
  std::vector<QuestionGroups> requests_;
  CounterFactTexts texts_;
};

}  // namespace

std::unique_ptr<Protocol> make_counterfact(const EvaluationOptions& options) {
  return std::make_unique<CounterFactProtocol>(options.counterfact);
}

}  // namespace lancet
