#include "lancet/text/tokenizer.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "sentencepiece_tokens.h"

namespace lancet {
namespace {

/// Returns the prefix scheme of transformers' Llama tokenizers. A configuration without `legacy` is older than this
/// key.
PrependScheme prefix_of(const TokenizerConfig& config) {
  if (!config.add_prefix_space.value_or(true)) return PrependScheme::kNever;
  return config.legacy.value_or(true) ? PrependScheme::kAlways : PrependScheme::kFirst;
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder) {
  if (has_model_file(folder / "tokenizer.json")) return open_bpe_tokenizer(folder / "tokenizer.json");
  if (has_model_file(folder / "tokenizer.model")) {
    const TokenizerConfig config = load_tokenizer_config(folder);
    return open_sentencepiece_tokenizer(
        folder / "tokenizer.model",
        {.add_bos = config.add_bos_token.value_or(true), .add_eos = config.add_eos_token.value_or(false)},
        {.added = config.added_tokens, .prefix = prefix_of(config)});
  }
  if (has_model_file(folder / "vocab.json")) return open_vocab_and_merges(folder);
  throw TokenizerError(cat("tokenizer: ", folder.string(),
                           ": expected tokenizer.json, tokenizer.model or vocab.json; copy the checkpoint's tokenizer "
                           "into the folder"));
}

}  // namespace lancet
