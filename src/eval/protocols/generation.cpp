// Free generation: what the edited model says by itself, without being shown the target (arXiv 2502.11177 on why that
// matters), after the prompt alone, after a sentence that has nothing to do with it, and as the answer to the prompt as
// a user's message.
#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text_metrics/answer_match.h"
#include "protocols.h"

namespace lancet {
namespace {

/// How a prompt is put to the model.
struct GenerationKind {
  std::string name;   ///< metrics' begin so
  std::string where;  ///< their explanations go on so: "share of edited prompts" + where
  int64_t tokens = 0;
  std::string prefix = {};  ///< put before every prompt, a space after it; may be empty
  std::optional<ChatTemplate> chat = {};
  JudgedEnd end = JudgedEnd::kNone;
  bool is_shown = true;
};

class GenerationProtocol : public Protocol {
 public:
  explicit GenerationProtocol(GenerationKind kind) : kind_(std::move(kind)) {}

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    const bool can_end = collector.tokenizer().eos_id() || kind_.chat;
    if (!can_end && kind_.end == JudgedEnd::kEos)
      throw ConfigError(cat(collector.where(),
                            ": evaluate.target_end: eos: expected a tokenizer with an end token, got ",
                            "one without: set none"));
    must_end_ = can_end && kind_.end != JudgedEnd::kNone;
    const std::string prompt = kind_.prefix.empty() ? request.prompt.text : kind_.prefix + " " + request.prompt.text;
    const size_t place =
        kind_.chat ? collector.chat(*kind_.chat, prompt, kind_.tokens) : collector.generate(prompt, kind_.tokens);
    texts_.push_back({place, {request.target}, request.target_aliases});
  }

  std::vector<MetricRow> metrics() const override {
    const std::string where =
        cat("share of edited prompts", kind_.where, " (at most ", kind_.tokens, " tokens, to EOS) ");
    std::vector<MetricRow> rows{
        {kind_.name + "_exact", kind_.name,
         must_end_ ? where + "is the new target, whole, after which the model stops (case, punctuation, articles aside)"
                   : where + "is the new target up to the first full stop or line break (case, punctuation, articles "
                             "aside)"},
        {kind_.name + "_contains", kind_.name,
         where + "contains the new target, or one of its other names, as whole words"}};
    const auto has_aliases = [](const Text& text) { return !text.aliases.empty(); };
    if (std::any_of(texts_.begin(), texts_.end(), has_aliases))
      rows.insert(rows.begin() + 1, {kind_.name + "_alias", kind_.name,
                                     where + "is the new target or one of its other names in that sense"});
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const Text& text = texts_[request];
    const std::optional<GeneratedText>& written = now.texts[text.place];
    if (!written) return {};
    std::vector<std::string> all = text.target;
    all.insert(all.end(), text.aliases.begin(), text.aliases.end());
    Tallies tallies;
    tallies[kind_.name + "_exact"].add(is_exact(*written, text.target) ? 1 : 0);
    if (!text.aliases.empty()) tallies[kind_.name + "_alias"].add(is_exact(*written, all) ? 1 : 0);
    tallies[kind_.name + "_contains"].add(contains(written->continuation, all) ? 1 : 0);
    return tallies;
  }

  std::optional<size_t> shown_text(size_t request) const override {
    return kind_.is_shown ? std::optional(texts_[request].place) : std::nullopt;
  }

 private:
  struct Text {
    size_t place = 0;
    std::vector<std::string> target;  ///< one
    std::vector<std::string> aliases;
  };

  bool is_exact(const GeneratedText& written, const std::vector<std::string>& answers) const {
    if (!must_end_) return is_exactly(written.continuation, answers);
    return written.has_ended && is_wholly(written.continuation, answers);
  }

  GenerationKind kind_;
  bool must_end_ = false;
  std::vector<Text> texts_;  ///< one for each request
};

}  // namespace

std::unique_ptr<Protocol> make_generation(const EvaluationOptions& options) {
  return std::make_unique<GenerationProtocol>(GenerationKind{.name = "generation",
                                                             .where = " whose greedy continuation",
                                                             .tokens = options.generated_tokens,
                                                             .end = options.target_end});
}

std::unique_ptr<Protocol> make_distracted(const EvaluationOptions& options) {
  return std::make_unique<GenerationProtocol>(
      GenerationKind{.name = "distracted",
                     .where = " after another sentence whose greedy continuation",
                     .tokens = options.generated_tokens,
                     .prefix = options.distractor,
                     .end = options.target_end,
                     .is_shown = false});
}

std::unique_ptr<Protocol> make_chat(const EvaluationOptions& options) {
  ChatTemplate chat = find_template(options.chat_template);
  return std::make_unique<GenerationProtocol>(
      GenerationKind{.name = "chat",
                     .where = cat(", as a user's message (template: ", chat.name(), "), whose greedy answer"),
                     .tokens = options.generated_tokens,
                     .chat = std::move(chat),
                     .end = options.target_end});
}

}  // namespace lancet
