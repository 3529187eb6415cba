#include "lancet/session/generate.h"

#include <algorithm>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/session/added_text.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

/// Refuses what changes nothing where the likeliest token is taken.
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

std::vector<Answer> TextGenerator::answer(const CausalLM& model, std::span<const std::string> prompts,
                                          const GenerateTextOptions& options,
                                          const std::function<void(const std::string&)>& on_text) const {
  std::vector<GenerateRow> rows;
  for (const std::string& prompt : prompts)
    rows.resize(rows.size() + static_cast<size_t>(options.samples),
                {prompt_ids(prompt, options.tokens), options.tokens});
  GenerateOptions generation{.eos_ids = files_.config.eos_ids,
                             .sampling = options.sampling,
                             .first_row = options.first_prompt * options.samples};
  if (chat_)
    for (const TokenId id : chat_->end_ids(*files_.tokenizer)) generation.eos_ids.push_back(id);
  const Tokenizer& tokenizer = *files_.tokenizer;
  std::vector<TokenId> told;
  std::string beginning;
  size_t told_bytes = 0;
  if (on_text && rows.size() == 1) {
    told = rows.front().prompt;
    beginning = tokenizer.decode(told);
    generation.on_token = [&](int64_t, TokenId id) {
      told.push_back(id);
      const std::string text = added_text(tokenizer, told, beginning);
      const size_t whole = whole_bytes(text);
      if (whole <= told_bytes) return;
      on_text(text.substr(told_bytes, whole - told_bytes));
      told_bytes = whole;
    };
  }
  std::vector<Answer> answers;
  for (std::vector<TokenId>& ids : generate(model, rows, generation)) {
    std::vector<TokenId>& all = rows[answers.size()].prompt;
    const std::string prompt = tokenizer.decode(all);
    all.insert(all.end(), ids.begin(), ids.end());
    std::string text = added_text(tokenizer, all, prompt);
    answers.push_back({std::move(text), std::move(ids)});
  }
  if (on_text && answers.size() == 1 && told_bytes < answers[0].text.size())
    on_text(answers[0].text.substr(told_bytes));
  return answers;
}

}  // namespace lancet
