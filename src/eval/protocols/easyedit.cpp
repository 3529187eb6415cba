// EasyEdit's teacher-forced metrics (arXiv 2308.07269; KnowEdit, arXiv 2401.01286): how many tokens of given answers
// are predicted, and for locality how often the edited model agrees with the unedited one. There is one outcome for
// each request.
#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/text_metrics/ngram_entropy.h"
#include "protocols.h"
#include "scored_probes.h"

namespace lancet {
namespace {

constexpr std::string_view kRewrite = "easyedit_rewrite_acc", kRephrase = "easyedit_rephrase_acc",
                           kFluency = "easyedit_fluency";

std::string locality_name(std::string_view section) { return cat("easyedit_locality_", section, "_acc"); }
std::string portability_name(std::string_view section) { return cat("easyedit_portability_", section, "_acc"); }

/// Indices of the scores of a section's probes.
struct SectionQuestions {
  std::string name;
  std::vector<size_t> scores;
};

struct ProbeQuestions {
  size_t rewrite = 0;
  std::vector<size_t> rephrases;
  std::vector<SectionQuestions> locality, portability;
  size_t text = 0;
};

/// Returns the mean over the scores of the share of positions at which both models have the same likeliest token.
std::optional<double> mean_agreement(std::span<const size_t> scores, const ModelAnswers& now,
                                     const ModelAnswers& before) {
  Tally shares;
  for (const size_t score : scores) {
    const std::vector<TokenId>&a = now.scores[score]->argmax, &b = before.scores[score]->argmax;
    Tally places;
    for (size_t i = 0; i < a.size(); ++i) places.add(a[i] == b[i] ? 1 : 0);
    add_outcome(shares, places.mean());
  }
  return shares.mean();
}

void remember(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

class EasyEditProtocol : public Protocol {
 public:
  void ask(const EditRequest& request, QuestionCollector& collector) override {
    ProbeQuestions asked;
    asked.rewrite = collector.score(request.prompt.text, request.target);
    asked.rephrases = ask_probes(collector, probes_of(request.paraphrases, request.target));
    for (const ProbeSection& section : locality_sections(request)) {
      remember(locality_, section.name);
      asked.locality.push_back({section.name, ask_probes(collector, section.probes)});
    }
    for (const ProbeSection& section : request.portability) {
      remember(portability_, section.name);
      asked.portability.push_back({section.name, ask_probes(collector, section.probes)});
    }
    asked.text = ask_long_text(collector, request.prompt.text);
    requests_.push_back(std::move(asked));
  }

  std::vector<MetricRow> metrics() const override {
    std::vector<MetricRow> rows{
        {std::string(kRewrite), "easyedit",
         "EasyEdit rewrite_acc: share of the target's tokens that are the likeliest in their places after the edited "
         "prompt (teacher-forced)"},
        {std::string(kRephrase), "easyedit", "EasyEdit rephrase_acc: as easyedit_rewrite_acc, mean over paraphrases"}};
    for (const std::string& section : locality_)
      rows.push_back({locality_name(section), "easyedit",
                      cat("EasyEdit locality, ", section,
                          ": share of the given answers' places where the likeliest token is that of the unedited "
                          "model, right or wrong (teacher-forced)")});
    for (const std::string& section : portability_)
      rows.push_back({portability_name(section), "easyedit",
                      cat("EasyEdit portability, ", section,
                          ": share of the given answers' tokens that are the likeliest in their places "
                          "(teacher-forced)")});
    rows.push_back({std::string(kFluency), "easyedit",
                    "EasyEdit fluency: n-gram entropy of one text after the edited prompt, sampled from the five "
                    "likeliest tokens up to 100 tokens in all",
                    Unit::kBits});
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& before) const override {
    const ProbeQuestions& asked = requests_[request];
    Tallies tallies;
    tallies[std::string(kRewrite)].add(now.scores[asked.rewrite]->share_right());
    add_outcome(tallies[std::string(kRephrase)], mean_token_match(asked.rephrases, now));
    for (const SectionQuestions& section : asked.locality)
      add_outcome(tallies[locality_name(section.name)], mean_agreement(section.scores, now, before));
    for (const SectionQuestions& section : asked.portability)
      add_outcome(tallies[portability_name(section.name)], mean_token_match(section.scores, now));
    if (const auto& text = now.texts[asked.text]) tallies[std::string(kFluency)].add(ngram_entropy(text->whole));
    return tallies;
  }

 private:
  std::vector<ProbeQuestions> requests_;
  std::vector<std::string> locality_, portability_;  ///< names of sections, in the order of the records
};

}  // namespace

std::unique_ptr<Protocol> make_easyedit(const EvaluationOptions& /*options*/) {
  return std::make_unique<EasyEditProtocol>();
}

}  // namespace lancet
