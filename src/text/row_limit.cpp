#include "lancet/text/row_limit.h"

#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

class RowLimitedTokenizer final : public Tokenizer {
 public:
  RowLimitedTokenizer(std::unique_ptr<Tokenizer> tokenizer, int64_t rows, std::string model)
      : tokenizer_(std::move(tokenizer)), rows_(rows), model_(std::move(model)) {}

  Encoding encode(std::string_view text, SpecialTokens special) const override {
    Encoding encoding = tokenizer_->encode(text, special);
    for (size_t i = 0; i < encoding.ids.size(); ++i)
      if (encoding.ids[i] >= rows_) fail(text, encoding.ids[i], encoding.spans[i]);
    return encoding;
  }

  std::string decode(std::span<const TokenId> ids) const override { return tokenizer_->decode(ids); }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string piece(TokenId id) const override { return tokenizer_->piece(id); }
  std::optional<TokenId> bos_id() const override { return tokenizer_->bos_id(); }
  std::optional<TokenId> eos_id() const override { return tokenizer_->eos_id(); }
  std::string description() const override { return tokenizer_->description(); }

 private:
  [[noreturn]] void fail(std::string_view text, TokenId id, ByteSpan span) const {
    constexpr size_t kShown = 60;
    const bool is_put_there = span.begin == span.end;
    const std::string place = is_put_there
                                  ? "that the tokenizer puts around every text"
                                  : cat("at byte ", span.begin, " of the text \"", excerpt(text, kShown), "\"");
    throw TokenizerError(cat("tokenizer: ", model_, ": the token \"", tokenizer_->piece(id), "\" ", place,
                             " has the id ", id, ", expected one below ", rows_,
                             ", which is how many rows the model has; ",
                             is_put_there ? "take the tokenizer that the model was trained with"
                                          : "write the text without it, or take the tokenizer that the model was "
                                            "trained with"));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  int64_t rows_;
  std::string model_;
};

}  // namespace

std::unique_ptr<Tokenizer> limit_to_rows(std::unique_ptr<Tokenizer> tokenizer, int64_t rows, std::string model) {
  const int64_t size = tokenizer->vocab_size();
  if (size <= rows) return tokenizer;
  log_warning(cat("tokenizer: ", model, ": the tokenizer has ", size, " ids, the model rows for ", rows,
                  " (config.json's vocab_size): a text with one of the last ", size - rows,
                  " is refused, every other one is fine"));
  return std::make_unique<RowLimitedTokenizer>(std::move(tokenizer), rows, std::move(model));
}

}  // namespace lancet
