#include "lancet/editing/contexts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/generate.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/layered_spec.h"
#include "lancet/spec/read_option.h"
#include "lancet/text/chat_template.h"
#include "lancet/text/prompt.h"

namespace lancet {
namespace {

constexpr std::string_view kPlain = "{}", kModelsTemplate = "model";
constexpr std::array<std::string_view, 5> kOpenings{"The", "Therefore", "Because", "I", "You"};

/// Removes what has a meaning elsewhere: braces mark the prompt's place, and line ends would end a document.
std::string cleaned(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '{' || c == '}' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::vector<std::string> sample_templates(const CausalLM& model, const Tokenizer& tokenizer,
                                          const ContextOptions& options, uint64_t seed) {
  std::vector<GenerateRow> rows;
  for (int64_t i = 0; i < options.generate; ++i) {
    std::vector<TokenId> opening = tokenizer.ids(kOpenings[static_cast<size_t>(i) % kOpenings.size()]);
    const int64_t left = std::max<int64_t>(options.length - static_cast<int64_t>(opening.size()), 1);
    rows.push_back({std::move(opening), left});
  }
  std::vector<std::string> templates{std::string(kPlain)};
  const std::string before = template_opening(tokenizer, options.opening);
  const std::vector<std::vector<TokenId>> continuations =
      generate(model, rows, {.eos_ids = model.config().eos_ids, .sampling = {.top_k = 5, .seed = seed}});
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<TokenId> ids = rows[i].prompt;
    ids.insert(ids.end(), continuations[i].begin(), continuations[i].end());
    templates.push_back(before + cleaned(tokenizer.decode(ids)) + ". {}");
  }
  return templates;
}

}  // namespace

ContextOptions parse_context_options(ConfigSection& editor) {
  ContextOptions options;
  const ConfigTree* contexts = editor.raw(LayeredSpec::kContexts.key);
  if (contexts == nullptr || contexts->kind != ConfigTree::Kind::kList) {
    ConfigSection section = editor.section(LayeredSpec::kContexts.key);
    options.generate = read(section, ContextsSpec::kGenerate);
    options.length = read(section, ContextsSpec::kLength);
    if (section.has(ContextsSpec::kChat.key)) options.chat = read(section, ContextsSpec::kChat);
    if (!options.chat.empty() && options.chat != kModelsTemplate && !has_one_place(options.chat))
      section.problem(ContextsSpec::kChat.key,
                      cat("expected 'model', or a text with exactly one {}, got '", options.chat, "'"));
    section.finish();
    return options;
  }
  options.templates = editor.texts(LayeredSpec::kContexts.key);
  for (const std::string& text : options.templates)
    if (!has_one_place(text))
      editor.problem(LayeredSpec::kContexts.key, cat("'", text, "': expected exactly one {}, where the prompt goes"));
  const auto plain = std::find(options.templates.begin(), options.templates.end(), kPlain);
  if (plain == options.templates.end()) {
    editor.problem(LayeredSpec::kContexts.key,
                   "expected \"{}\" among the templates: the plain prompt is the edit's anchor");
  } else {
    std::rotate(options.templates.begin(), plain, plain + 1);
  }
  return options;
}

std::string template_opening(const Tokenizer& tokenizer, ContextOptions::Opening opening) {
  // The public codes get BOS from the prompts after which they generate. So there is none if no text is put before a
  // prompt.
  if (opening == ContextOptions::Opening::kPlain || !tokenizer.adds_bos()) return "";
  const std::optional<TokenId> bos = tokenizer.bos_id();
  std::string text = tokenizer.piece(*bos);
  const bool is_read_back = tokenizer.ids(text, SpecialTokens::kNone) == std::vector<TokenId>{*bos};
  return is_read_back && text != "<s>" ? text : "";
}

std::optional<std::string> chat_context(const ContextOptions& options, const std::filesystem::path& model,
                                        const Tokenizer& tokenizer) {
  if (options.chat.empty()) return std::nullopt;
  const bool is_models = options.chat == kModelsTemplate;
  return (is_models ? ChatTemplate::of(model) : ChatTemplate::by_hand(options.chat)).context(tokenizer);
}

std::vector<std::string> make_contexts(const CausalLM& model, const ModelFiles& files, const ContextOptions& options,
                                       uint64_t seed, Communicator& communicator) {
  if (!options.templates.empty()) return options.templates;
  std::vector<std::string> templates;
  communicator.run_collectively("contexts", [&] {
    if (!communicator.is_root()) return;
    templates = sample_templates(model, *files.tokenizer, options, seed);
    if (std::optional<std::string> chat = chat_context(options, files.checkpoint.folder(), *files.tokenizer))
      templates.push_back(std::move(*chat));
  });
  return broadcast_texts(communicator, templates);
}

TargetForm target_form(const TargetRule& rule, const ModelConfig& config, const Tokenizer& tokenizer) {
  TargetForm form(rule.compat, std::nullopt, rule.chunk_tokens);
  form.kept = rule.kept;
  if (rule.end == TargetEnd::kNone) return form;
  const std::optional<TokenId> end = tokenizer.eos_id();
  const bool stops = end && std::ranges::find(config.eos_ids, *end) != config.eos_ids.end();
  if (!stops && rule.end == TargetEnd::kEos)
    throw ConfigError(cat("editor.target_end: eos: expected a tokenizer with an end token at which generation stops, ",
                          end ? cat("got ", *end,
                                    ", which generation_config.json and config.json do not have in "
                                    "eos_token_id")
                              : "got one without",
                          ": set none"));
  if (stops) form.end = end;
  return form;
}

}  // namespace lancet
