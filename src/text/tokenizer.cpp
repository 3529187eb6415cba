#include "lancet/text/tokenizer.h"

#include <algorithm>
#include <cstdint>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "nfc.h"
#include "normalized_text.h"
#include "sentencepiece_tokens.h"

namespace lancet {
namespace {

/// Returns the scheme of transformers' Llama tokenizers; a configuration that does not say `legacy` is older than the
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

namespace {

size_t most_bytes(size_t text) { return kMostGrowth * text + kAlwaysRoom; }

}  // namespace

NormalizedText::NormalizedText(std::string_view text, size_t begin, size_t end)
    : text_(text.substr(begin, end - begin)), first_(static_cast<int64_t>(begin)), most_(most_bytes(text_.size())) {}

ByteSpan NormalizedText::origin_of(size_t at) const {
  if (!origin_.empty()) return origin_[at];
  size_t begin = at;
  while (begin > 0 && !begins_character(text_[begin])) --begin;
  return {first_ + static_cast<int64_t>(begin), first_ + static_cast<int64_t>(begin + utf8_bytes(text_[begin]))};
}

void NormalizedText::write_origins() {
  if (!origin_.empty()) return;
  std::vector<ByteSpan> origin;
  origin.reserve(text_.size());
  while (origin.size() < text_.size())
    origin.insert(origin.end(), utf8_bytes(text_[origin.size()]), origin_of(origin.size()));
  origin_ = std::move(origin);
}

NormalizedText NormalizedText::slice(size_t begin, size_t end) const {
  NormalizedText out;
  out.most_ = most_;
  out.text_ = text_.substr(begin, end - begin);
  out.first_ = first_ + static_cast<int64_t>(begin);
  if (!origin_.empty())
    out.origin_.assign(origin_.begin() + static_cast<ptrdiff_t>(begin), origin_.begin() + static_cast<ptrdiff_t>(end));
  return out;
}

ByteSpan NormalizedText::origin(size_t begin, size_t end) const {
  const auto is_put_in = [&](size_t at) { return !origin_.empty() && origin_[at].begin == origin_[at].end; };
  while (begin + 1 < end && is_put_in(begin)) ++begin;
  while (begin + 1 < end && is_put_in(end - 1)) --end;
  return {origin_of(begin).begin, origin_of(end - 1).end};
}

void NormalizedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  require_room(prefix.size());
  write_origins();
  const int64_t at = origin_begin();
  text_.insert(0, prefix);
  origin_.insert(origin_.begin(), prefix.size(), ByteSpan{at, at});
}

void NormalizedText::require_room(size_t added) const {
  if (added <= most_ - std::min(most_, text_.size())) return;
  throw TokenizerError(cat("tokenizer: the normalizer makes a text longer than ", most_, " bytes of it, which is ",
                           kMostGrowth, " times as long and ", kAlwaysRoom,
                           " bytes more; such a tokenizer.json is damaged or made to take all memory: download the "
                           "model's own"));
}

/// A text in the making: stretches of another one as they are, and others replaced.
class NormalizedText::Rewriting {
 public:
  explicit Rewriting(NormalizedText& from) : from_(from) {
    from.write_origins();
    out_.most_ = from.most_;
  }

  /// `begin` is not before the end of what was replaced last.
  void replace(size_t begin, size_t end, std::string_view content) {
    copy_until(begin);
    out_.require_room(content.size());
    out_.text_ += content;
    out_.origin_.insert(out_.origin_.end(), content.size(), from_.origin(begin, end));
    done_ = end;
  }

  NormalizedText finished() {
    copy_until(from_.text_.size());
    return std::move(out_);
  }

 private:
  void copy_until(size_t end) {
    out_.text_.append(from_.text_, done_, end - done_);
    out_.origin_.insert(out_.origin_.end(), from_.origin_.begin() + static_cast<ptrdiff_t>(done_),
                        from_.origin_.begin() + static_cast<ptrdiff_t>(end));
  }

  const NormalizedText& from_;
  NormalizedText out_;
  size_t done_ = 0;
};

void NormalizedText::replace(std::string_view pattern, std::string_view content) {
  size_t at = text_.find(pattern);
  if (at == std::string::npos) return;
  Rewriting rewriting(*this);
  for (; at != std::string::npos; at = text_.find(pattern, at + pattern.size()))
    rewriting.replace(at, at + pattern.size(), content);
  *this = rewriting.finished();
}

void NormalizedText::compose() {
  const std::vector<NfcChange> changes = nfc_changes(text_);
  if (changes.empty()) return;
  Rewriting rewriting(*this);
  for (const NfcChange& change : changes) rewriting.replace(change.begin, change.end, change.text);
  *this = rewriting.finished();
}

void NormalizedText::apply(const NormalizerStep& step) {
  if (const auto* prefix = std::get_if<PrependStep>(&step)) prepend(prefix->text);
  if (const auto* replaced = std::get_if<ReplaceStep>(&step)) replace(replaced->pattern, replaced->content);
  if (std::holds_alternative<NfcStep>(step)) compose();
}

}  // namespace lancet
