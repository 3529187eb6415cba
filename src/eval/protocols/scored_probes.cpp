#include "scored_probes.h"

#include <algorithm>

namespace lancet {

size_t ask_long_text(QuestionCollector& collector, std::string_view prompt) {
  const auto prompt_tokens = static_cast<int64_t>(collector.tokenizer().ids(prompt).size());
  return collector.generate(prompt, std::max<int64_t>(0, kLongTextTokens - prompt_tokens), Decoding::kTopK5);
}

std::vector<size_t> ask_probes(QuestionCollector& collector, std::span<const Probe> probes) {
  std::vector<size_t> scores;
  for (const Probe& probe : probes)
    if (!probe.answers.empty()) scores.push_back(collector.score(probe.prompt, probe.answers.front()));
  return scores;
}

std::vector<Probe> probes_of(std::span<const std::string> prompts, const std::string& answer) {
  std::vector<Probe> probes;
  for (const std::string& prompt : prompts) probes.push_back({prompt, {answer}});
  return probes;
}

std::vector<ProbeSection> locality_sections(const EditRequest& request) {
  std::vector<ProbeSection> sections = request.locality;
  if (request.target_true && !request.neighborhood.empty())
    sections.push_back({"neighborhood", probes_of(request.neighborhood, *request.target_true)});
  return sections;
}

std::optional<double> mean_token_match(std::span<const size_t> scores, const ModelAnswers& now) {
  Tally shares;
  for (const size_t score : scores) shares.add(now.scores[score]->share_right());
  return shares.mean();
}

void add_outcome(Tally& tally, std::optional<double> outcome) {
  if (outcome) tally.add(*outcome);
}

}  // namespace lancet
