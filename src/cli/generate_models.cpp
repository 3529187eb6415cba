#include "generate_models.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

std::optional<ChatTemplate> choose_template(const ChatChoice& chat, const ModelFiles& files) {
  if (chat.from_model) return ChatTemplate::of(files.checkpoint.folder());
  if (!chat.by_hand.empty()) return ChatTemplate::by_hand(chat.by_hand);
  return std::nullopt;
}

/// Bytes of `text` in front of a character that is not whole yet.
size_t whole_bytes(const std::string& text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  size_t size = text.size();
  while (size >= kReplacement.size() &&
         text.compare(size - kReplacement.size(), kReplacement.size(), kReplacement) == 0)
    size -= kReplacement.size();
  return size;
}

}  // namespace

AskedModel::AskedModel(std::string folder, const ChatChoice& chat)
    : folder_(std::move(folder)), files_(open_model(folder_, {})), chat_(choose_template(chat, files_)) {}

std::vector<TokenId> AskedModel::prompt_ids(const std::string& prompt, int64_t tokens) const {
  std::vector<TokenId> ids = chat_ ? chat_->ids(*files_.tokenizer, prompt) : files_.tokenizer->ids(prompt);
  const std::string shown = excerpt(prompt, 60);
  if (ids.empty()) throw ConfigError(cat("prompt '", shown, "': no tokens: expected some text"));
  const auto length = static_cast<int64_t>(ids.size());
  if (length + tokens > max_positions())
    throw ConfigError(cat("prompt '", shown, "': ", length, " tokens and ", tokens, " new ones, but ", folder_, " has ",
                          max_positions(), " positions (config.json): use a smaller --tokens or a shorter prompt"));
  return ids;
}

void AskedModel::load(const RunOptions& run, const GenerationSize& size) {
  model_.emplace(load_model(
      files_, run, evaluation_work(run, files_.config, {.scoring = {}, .kept_states = 0, .generation = size})));
}

std::string AskedModel::text_behind(const std::vector<TokenId>& prompt, const std::vector<TokenId>& added) const {
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), added.begin(), added.end());
  return files_.tokenizer->decode(all).substr(files_.tokenizer->decode(prompt).size());
}

std::vector<Answer> AskedModel::answer(const std::vector<std::string>& prompts, int64_t first_prompt,
                                       const GenerateSettings& settings,
                                       const std::function<void(const std::string&)>& on_text) const {
  std::vector<GenerateRow> rows;
  for (const std::string& prompt : prompts)
    rows.resize(rows.size() + static_cast<size_t>(settings.samples),
                {prompt_ids(prompt, settings.tokens), settings.tokens});
  GenerateOptions options{
      .eos_ids = files_.config.eos_ids, .sampling = settings.sampling, .first_row = first_prompt * settings.samples};
  if (chat_)
    for (const TokenId id : chat_->end_ids(*files_.tokenizer)) options.eos_ids.push_back(id);
  std::vector<TokenId> told;
  size_t told_bytes = 0;
  if (on_text && rows.size() == 1)
    options.on_token = [&](int64_t, TokenId id) {
      told.push_back(id);
      const std::string text = text_behind(rows[0].prompt, told);
      const size_t whole = whole_bytes(text);
      if (whole <= told_bytes) return;
      on_text(text.substr(told_bytes, whole - told_bytes));
      told_bytes = whole;
    };
  std::vector<Answer> answers;
  for (std::vector<TokenId>& ids : generate(*model_, rows, options)) {
    std::string text = text_behind(rows[answers.size()].prompt, ids);
    answers.push_back({std::move(text), std::move(ids)});
  }
  if (on_text && answers.size() == 1 && told_bytes < answers[0].text.size())
    on_text(answers[0].text.substr(told_bytes));
  return answers;
}

}  // namespace lancet::cli
