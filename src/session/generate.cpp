#include "lancet/session/generate.h"

#include <algorithm>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/session/added_text.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

/// Refuses options that have no effect when the likeliest token is taken.
void refuse_idle(const ConfigSection& section, const GenerateTextOptions& options, const Spelling& spelt) {
  for (const auto& [is_given, option] :
       {std::pair<bool, const Option*>{section.has(GenerateSpec::kSeed.key), &GenerateSpec::kSeed},
        {options.samples > 1, &GenerateSpec::kSamples}})
    if (is_given)
      throw ConfigError(cat(spelt(option->key),
                            ": the likeliest token is taken each time, so it would change nothing: sample with ",
                            spelt(GenerateSpec::kTemperature.key), " (1: the model's own distribution), ",
                            spelt(GenerateSpec::kTopK.key), " or ", spelt(GenerateSpec::kTopP.key)));
}

/// Gives the text of a continuation while its tokens come, in whole characters.
class TextTeller {
 public:
  TextTeller(const Tokenizer& tokenizer, std::vector<TokenId> prompt)
      : tokenizer_(&tokenizer), ids_(std::move(prompt)), beginning_(tokenizer.decode(ids_)) {}

  /// Returns the new part of the text, which can be empty.
  std::string add(TokenId id) {
    ids_.push_back(id);
    const std::string text = added_text(*tokenizer_, ids_, beginning_);
    return from_told(text, whole_bytes(text));
  }

  /// Returns what is left at the end: the bytes of unfinished characters.
  std::string rest() {
    const std::string text = added_text(*tokenizer_, ids_, beginning_);
    return from_told(text, text.size());
  }

 private:
  std::string from_told(const std::string& text, size_t end) {
    if (end <= told_bytes_) return {};
    const size_t begin = std::exchange(told_bytes_, end);
    return text.substr(begin, end - begin);
  }

  const Tokenizer* tokenizer_;
  std::vector<TokenId> ids_;
  std::string beginning_;
  size_t told_bytes_ = 0;
};

/// Passes on a text that is not empty.
void tell_if_any(const std::string& text, const std::function<void(const std::string&)>& on_text) {
  if (!text.empty()) on_text(text);
}

}  // namespace

GenerateTextOptions parse_generate_options(const ConfigTree& given, const Spelling& spelt) {
  ConfigProblems problems("generate");
  ConfigSection section(given, "", problems);
  const bool draws = std::ranges::any_of(GenerateSpec::kDrawing,
                                         [&](const AnyOption& option) { return section.has(base_of(option).key); });
  const SamplingOptions drawn{.temperature = read(section, GenerateSpec::kTemperature),
                              .top_k = read(section, GenerateSpec::kTopK),
                              .top_p = read(section, GenerateSpec::kTopP),
                              .seed = static_cast<uint64_t>(read(section, GenerateSpec::kSeed))};
  const GenerateTextOptions options{.sampling = draws ? drawn : SamplingOptions(),
                                    .tokens = read(section, GenerateSpec::kTokens),
                                    .samples = read(section, GenerateSpec::kSamples)};
  section.finish();
  problems.throw_if_any();
  if (!draws) refuse_idle(section, options, spelt);
  return options;
}

std::vector<TokenId> TextGenerator::prompt_ids(const std::string& prompt, int64_t tokens) const {
  std::vector<TokenId> ids = chat_ ? chat_->ids(*files_.tokenizer, prompt) : files_.tokenizer->ids(prompt);
  const std::string shown = excerpt(prompt, 60);
  if (ids.empty())
    throw ConfigError(
        cat("prompt '", shown, "': no tokens: expected some text, because this tokenizer puts no BOS before it"));
  const auto length = static_cast<int64_t>(ids.size());
  if (const int64_t most = files_.config.max_positions; length + tokens > most)
    throw ConfigError(cat("prompt '", shown, "': ", length, " tokens and ", tokens, " new ones, but ",
                          files_.checkpoint.folder().string(), " has ", most,
                          " positions (config.json): ask for fewer tokens (--tokens) or use a shorter prompt"));
  return ids;
}

GenerateOptions TextGenerator::generation_of(const GenerateTextOptions& options) const {
  GenerateOptions generation{.eos_ids = files_.config.eos_ids,
                             .sampling = options.sampling,
                             .first_row = options.first_prompt * options.samples};
  if (chat_)
    for (const TokenId id : chat_->end_ids(*files_.tokenizer)) generation.eos_ids.push_back(id);
  return generation;
}

std::vector<Answer> TextGenerator::answer(const CausalLM& model, std::span<const std::string> prompts,
                                          const GenerateTextOptions& options,
                                          const std::function<void(const std::string&)>& on_text) const {
  std::vector<GenerateRow> rows;
  for (const std::string& prompt : prompts)
    rows.resize(rows.size() + static_cast<size_t>(options.samples),
                {prompt_ids(prompt, options.tokens), options.tokens});
  GenerateOptions generation = generation_of(options);
  std::optional<TextTeller> teller;
  if (on_text && rows.size() == 1) {
    teller.emplace(*files_.tokenizer, rows.front().prompt);
    generation.on_token = [&](int64_t, TokenId id) { tell_if_any(teller->add(id), on_text); };
  }
  std::vector<Answer> answers;
  for (std::vector<TokenId>& ids : generate(model, rows, generation)) {
    std::vector<TokenId>& all = rows[answers.size()].prompt;
    const std::string prompt = files_.tokenizer->decode(all);
    all.insert(all.end(), ids.begin(), ids.end());
    std::string text = added_text(*files_.tokenizer, all, prompt);
    answers.push_back({std::move(text), std::move(ids)});
  }
  if (teller) tell_if_any(teller->rest(), on_text);
  return answers;
}

void TextGenerator::answer_in_turns(const CausalLM& model, const WeightsInTurns& turns, const std::string& prompt,
                                    const GenerateTextOptions& options,
                                    const std::function<void(AskedWeights, const std::string&)>& on_text) const {
  const GenerateRow row{prompt_ids(prompt, options.tokens), options.tokens};
  std::vector<TextTeller> tellers(turns.weights.size(), TextTeller(*files_.tokenizer, row.prompt));
  const auto tell = [&](size_t i, const std::string& text) {
    tell_if_any(text, [&](const std::string& more) { on_text(turns.weights[i], more); });
  };
  GenerateOptions generation = generation_of(options);
  generation.on_token = [&](int64_t i, TokenId id) {
    tell(static_cast<size_t>(i), tellers[static_cast<size_t>(i)].add(id));
  };
  const auto put_ith = [&](int64_t i) { turns.put(turns.weights[static_cast<size_t>(i)]); };
  generate_in_turns(model, row, static_cast<int64_t>(turns.weights.size()), put_ith, generation);
  for (size_t i = 0; i < turns.weights.size(); ++i) tell(i, tellers[i].rest());
}

}  // namespace lancet
