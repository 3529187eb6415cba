// Compares long answers with a long target: how much of the target the greedy answer repeats, and how many of its facts
// the answer has. Source: UnKE (arXiv 2405.15349), AKEW (arXiv 2402.18909); docs/metrics.md says how this differs from
// their code.
#include "lancet/core/strings.h"
#include "lancet/text_metrics/answer_match.h"
#include "lancet/text_metrics/overlap.h"
#include "protocols.h"

namespace lancet {
namespace {

class LongFormProtocol final : public Protocol {
 public:
  LongFormProtocol(const LongFormOptions& options, int64_t fact_tokens, std::optional<ChatTemplate> chat)
      : tokens_(options.tokens), fact_tokens_(fact_tokens), chat_(std::move(chat)) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    const auto put = [&](const std::string& prompt, int64_t tokens) {
      return chat_ ? collector.chat(*chat_, prompt, Thinking::kNone, tokens) : collector.generate(prompt, tokens);
    };
    Asked& asked = asked_.emplace_back();
    asked.target = request.target;
    asked.answer = put(request.prompt.text, tokens_);
    for (const std::string& prompt : request.paraphrases) asked.paraphrased.push_back(put(prompt, tokens_));
    for (const ProbeSection& section : request.portability)
      if (section.name == kFactsSection)
        for (const Probe& fact : section.probes) asked.facts.push_back({put(fact.prompt, fact_tokens_), fact.answers});
  }

  std::vector<MetricRow> metrics() const override {
    const std::string put = chat_ ? " as a user's message" : "";
    const std::string answer = cat(" of the greedy answer (at most ", tokens_, " tokens, to EOS) to ");
    std::vector<MetricRow> rows;
    const auto add = [&](const std::string& name, const std::string& prompts) {
      const std::string what = cat(answer, prompts, put, ", beside the target");
      rows.push_back({name + "rouge_l", "long_form", "ROUGE-L (F1)" + what});
      rows.push_back({name + "rouge_l_recall", "long_form", "ROUGE-L (recall)" + what});
      rows.push_back({name + "bleu", "long_form", "BLEU over characters" + what});
    };
    add("long_form_", "the edited prompt");
    rows.push_back({"long_form_recalled", "long_form",
                    "share of the target's facts whose answer stands in that answer as whole words"});
    rows.push_back({"long_form_asked", "long_form",
                    cat("share of the target's facts whose answer stands in the greedy answer (at most ", fact_tokens_,
                        " tokens) to their own question", put)});
    add("long_form_paraphrase_", "other prompts for it");
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const Asked& asked = asked_[request];
    Tallies tallies;
    const auto compare = [&](const std::string& name, const std::optional<GeneratedText>& text) {
      if (!text) return;
      tallies[name + "bleu"].add(character_bleu(text->continuation, asked.target));
      const std::optional<RougeL> rouge = rouge_l(text->continuation, asked.target);
      if (!rouge) return;
      tallies[name + "rouge_l"].add(rouge->f1);
      tallies[name + "rouge_l_recall"].add(rouge->recall);
    };
    const std::optional<GeneratedText>& answer = now.texts[asked.answer];
    compare("long_form_", answer);
    for (const size_t place : asked.paraphrased) compare("long_form_paraphrase_", now.texts[place]);
    for (const Fact& fact : asked.facts) {
      if (answer) tallies["long_form_recalled"].add(contains(answer->continuation, fact.answers) ? 1 : 0);
      if (const std::optional<GeneratedText>& own = now.texts[fact.question])
        tallies["long_form_asked"].add(contains(own->continuation, fact.answers) ? 1 : 0);
    }
    return tallies;
  }

  std::optional<size_t> shown_text(size_t request) const override { return asked_[request].answer; }

 private:
  struct Fact {
    size_t question = 0;  ///< index of the answer to its own question
    std::vector<std::string> answers;
  };
  struct Asked {
    std::string target;
    size_t answer = 0;                ///< index of the answer to the edited prompt
    std::vector<size_t> paraphrased;  ///< indices of the answers to other prompts
    std::vector<Fact> facts;
  };

  int64_t tokens_, fact_tokens_;
  std::optional<ChatTemplate> chat_;
  std::vector<Asked> asked_;
};

}  // namespace

std::unique_ptr<Protocol> make_long_form(const EvaluationOptions& options) {
  std::optional<ChatTemplate> chat;
  if (options.long_form.as_chat) chat = find_template(options.chat_template);
  return std::make_unique<LongFormProtocol>(options.long_form, options.generated_tokens, std::move(chat));
}

}  // namespace lancet
