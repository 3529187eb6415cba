#include "counterfact_texts.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/text_metrics/ngram_entropy.h"
#include "scored_probes.h"

namespace lancet {
namespace {

constexpr size_t kEssenceTokens = 100;

}  // namespace

CounterFactTexts::CounterFactTexts(const CounterFactFiles& files) {
  if (!files.snippets.empty()) snippets_ = read_attribute_snippets(files.snippets);
  if (!files.idf.empty()) tfidf_ = TfIdf::open(files.idf, files.vocabulary);
}

void CounterFactTexts::ask(const EditRequest& request, QuestionCollector& collector) {
  RequestQuestions asked;
  for (const std::string& prompt : request.generation_prompts) asked.texts.push_back(ask_long_text(collector, prompt));
  std::vector<std::string> references, own;
  if (snippets_)
    if (const auto found = snippets_->find({request.relation, request.target_id}); found != snippets_->end())
      for (const Snippet& snippet : found->second) {
        references.push_back(snippet.text);
        if (snippet.subject == request.subject) own.push_back(snippet.text);
      }
  asked.reference = join(references, " ");
  std::vector<TokenId> ids = own.empty() ? std::vector<TokenId>{} : collector.tokenizer().ids(join(own, " "));
  ids.resize(std::min(ids.size(), kEssenceTokens));
  if (ids.size() > 1)
    asked.essence = {collector.score_ids({{ids.front()}, {ids.begin() + 1, ids.end()}}),
                     static_cast<int64_t>(ids.size())};
  requests_.push_back(std::move(asked));
}

void CounterFactTexts::add_metrics(std::vector<MetricRow>& rows) const {
  rows.push_back(
      {"counterfact_ge", "counterfact",
       "CounterFact GE: n-gram entropy of texts after the generation prompts, sampled from the five likeliest "
       "tokens up to 100 tokens in all, mean over the texts of a request",
       Unit::kBits});
  if (tfidf_)
    rows.push_back({"counterfact_rs", "counterfact",
                    "CounterFact RS: TF-IDF cosine of these texts, all together, with the reference texts of the new "
                    "target",
                    Unit::kCosine});
  if (snippets_)
    rows.push_back({"counterfact_essence", "counterfact",
                    "CounterFact essence: perplexity of the first 100 tokens of the subject's own reference texts",
                    Unit::kPerplexity, Better::kLower});
}

void CounterFactTexts::judge(size_t request, const ModelAnswers& now, Tallies& tallies) const {
  const RequestQuestions& asked = requests_[request];
  Tally entropy;
  std::vector<std::string> written;
  for (const size_t text : asked.texts) {
    if (!now.texts[text]) continue;
    written.push_back(now.texts[text]->whole);
    entropy.add(ngram_entropy(written.back()));
  }
  add_outcome(tallies["counterfact_ge"], entropy.mean());
  if (tfidf_ && !written.empty() && !asked.reference.empty())
    add_outcome(tallies["counterfact_rs"], tfidf_->cosine(join(written, " "), asked.reference));
  if (asked.essence) {
    // the published formula divides by the number of all tokens, although the first token has no probability
    const auto n = static_cast<double>(asked.essence->tokens);
    tallies["counterfact_essence"].add(std::exp(now.scores[asked.essence->score]->nll * (n - 1) / n));
  }
}

}  // namespace lancet
