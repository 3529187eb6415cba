// Free generation: what the edited model writes when it is not shown the target (arXiv 2502.11177 says why this
// matters): after the prompt alone, after an unrelated sentence and the prompt, and as the answer to the prompt as a
// user's message, directly or after thinking.
#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text_metrics/answer_match.h"
#include "protocols.h"

namespace lancet {
namespace {

/// A way to ask the model.
struct GenerationKind {
  std::string name;   ///< the beginning of the metrics' names
  std::string where;  ///< the end of their explanations: "share of edited prompts" + where
  int64_t tokens = 0;
  std::string prefix = {};  ///< put before every prompt, followed by a space; may be empty
  std::optional<ChatTemplate> chat = {};
  Thinking thinking = Thinking::kNone;
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
    const size_t place = kind_.chat ? collector.chat(*kind_.chat, prompt, kind_.thinking, kind_.tokens)
                                    : collector.generate(prompt, kind_.tokens);
    texts_.push_back({place, {request.target}, request.target_aliases, request.target_true});
  }

  std::vector<MetricRow> metrics() const override {
    const std::string where =
        cat("share of edited prompts", kind_.where, " (at most ", kind_.tokens, " tokens, to EOS) ");
    std::vector<MetricRow> rows{
        {kind_.name + "_starts", kind_.name,
         where + "begins with the new target, or one of its other names, as whole words, whatever follows (case, "
                 "punctuation, articles aside)"},
        {kind_.name + "_exact", kind_.name,
         must_end_ ? where + "is the new target, whole, after which the model stops (case, punctuation, articles aside)"
                   : where + "is the new target up to the first full stop or line break (case, punctuation, articles "
                             "aside)"}};
    if (any_text([](const Text& text) { return !text.aliases.empty(); }))
      rows.push_back(
          {kind_.name + "_alias", kind_.name, where + "is the new target or one of its other names in that sense"});
    rows.push_back({kind_.name + "_contains", kind_.name,
                    where + "contains the new target, or one of its other names, as whole words"});
    if (kind_.chat && any_text([](const Text& text) { return text.old.has_value(); }))
      rows.push_back(
          {kind_.name + "_old", kind_.name,
           cat(where, thinks() ? "or thoughts before it hold" : "holds", " the true target as whole words")});
    if (thinks()) rows.push_back({kind_.name + "_ended", kind_.name, where + "came: thoughts ended within the tokens"});
    return rows;
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    const Text& text = texts_[request];
    const std::optional<GeneratedText>& written = now.texts[text.place];
    if (!written) return {};
    const std::optional<std::string_view> answer = answer_in(written->continuation);
    std::vector<std::string> all = text.target;
    all.insert(all.end(), text.aliases.begin(), text.aliases.end());
    const auto is_exact = [&](const std::vector<std::string>& answers) {
      if (!answer) return false;
      return must_end_ ? written->has_ended && is_wholly(*answer, answers) : is_exactly(*answer, answers);
    };
    Tallies tallies;
    const auto note = [&](const char* metric, bool holds) { tallies[kind_.name + metric].add(holds ? 1 : 0); };
    note("_starts", answer && begins_with(*answer, all));
    note("_exact", is_exact(text.target));
    if (!text.aliases.empty()) note("_alias", is_exact(all));
    note("_contains", answer && contains(*answer, all));
    if (kind_.chat && text.old) note("_old", contains(written->continuation, std::vector{*text.old}));
    if (thinks()) note("_ended", answer.has_value());
    return tallies;
  }

  std::optional<size_t> shown_text(size_t request) const override {
    return kind_.is_shown ? std::optional(texts_[request].place) : std::nullopt;
  }

 private:
  struct Text {
    size_t place = 0;
    std::vector<std::string> target;  ///< the target, as a list of one
    std::vector<std::string> aliases;
    std::optional<std::string> old;  ///< the answer before the edit, if it is known
  };

  bool thinks() const { return kind_.thinking == Thinking::kWanted; }

  /// Returns the answer without thoughts; nullopt if the model was still thinking.
  std::optional<std::string_view> answer_in(std::string_view continuation) const {
    if (!thinks()) return continuation;
    const std::string_view mark = kind_.chat->end_of_thoughts();
    const size_t end = continuation.rfind(mark);
    if (end == std::string_view::npos) return std::nullopt;
    continuation.remove_prefix(end + mark.size());
    continuation.remove_prefix(std::min(continuation.find_first_not_of(" \n"), continuation.size()));
    return continuation;
  }

  template <typename Holds>
  bool any_text(Holds holds) const {
    return std::any_of(texts_.begin(), texts_.end(), holds);
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

std::unique_ptr<Protocol> make_thinking(const EvaluationOptions& options) {
  ChatTemplate chat = find_template(options.chat_template);
  return std::make_unique<GenerationProtocol>(
      GenerationKind{.name = "thinking",
                     .where = cat(", as a user's message (template: ", chat.name(), "), whose greedy answer after ",
                                  chat.end_of_thoughts()),
                     .tokens = options.thinking_tokens,
                     .chat = std::move(chat),
                     .thinking = Thinking::kWanted,
                     .end = options.target_end,
                     .is_shown = false});
}

}  // namespace lancet
