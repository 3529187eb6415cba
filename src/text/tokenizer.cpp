#include "lancet/text/tokenizer.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "model_file.h"
#include "tokenizer_config.h"

namespace lancet {

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder) {
  if (has_model_file(folder / "tokenizer.json")) return open_bpe_tokenizer(folder / "tokenizer.json");
  const std::filesystem::path model = folder / "tokenizer.model";
  if (!has_model_file(model)) {
    throw TokenizerError(
        cat("tokenizer: ", folder.string(),
            ": expected tokenizer.json or tokenizer.model; copy the checkpoint's tokenizer into the folder"));
  }
  const TokenizerConfig config = load_tokenizer_config(folder);
  auto tokenizer =
      open_sentencepiece_tokenizer(model, {config.add_bos_token.value_or(true), config.add_eos_token.value_or(false)});
  // Tokens that were added beside the model would be cut into pieces here, so their ids would differ from training.
  for (const auto& [id, content] : config.added_tokens) {
    if (id < tokenizer->vocab_size() && tokenizer->piece(id) == content) continue;
    throw TokenizerError(cat("tokenizer: ", (folder / "tokenizer_config.json").string(), ": added_tokens_decoder: ", id,
                             " \"", content,
                             "\" is not in tokenizer.model; save the tokenizer as tokenizer.json "
                             "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers)"));
  }
  return tokenizer;
}

}  // namespace lancet
