// Second moments of the keys of many subjects, and covariances that count them beside those of text. An edit that is
// solved with such a covariance changes less of what the model says about other subjects.
// Source: the keys of subjects' last tokens are those that SUIT (arXiv 2509.24502) protects. Differs from it: they are
// weighed in the covariance, and not projected away.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/statistics/moment_source.h"

namespace lancet {

/// Returns the names of 5,000 people, places, works and companies (data/entities.txt, made by tools/entity_names.py).
std::span<const std::string_view> entity_names();

/// Returns a document for each name alone, one for each name after a few words, and, if `chat` is not empty, one of
/// these as a user's message. Each ends at the name's last token. `chat`: the text of a message with "{}" in the place
/// of its words.
CorpusTokens entity_documents(const Tokenizer& tokenizer, std::string_view chat);

/// C' = C + w (tr C / tr S) S, for each block of C.
class MixedMoments final : public MomentSource {
 public:
  /// `text` makes C, and `entities` makes S; both have the same layers. `weight`: w > 0.
  MixedMoments(std::shared_ptr<MomentSource> text, std::shared_ptr<MomentSource> entities, double weight)
      : text_(std::move(text)), entities_(std::move(entities)), weight_(weight) {}

  /// Returns the content key of C' for those of C and S.
  static std::string content_key(const std::string& text, const std::string& entities, double weight);

  std::string content_key(int64_t layer) const override {
    return content_key(text_->content_key(layer), entities_->content_key(layer), weight_);
  }
  void prepare(std::span<const int64_t> layers, Communicator& communicator) override;
  /// The number of tokens is that of C.
  Covariance load(int64_t layer) const override;
  bool from_cache(int64_t layer) const override { return text_->from_cache(layer) && entities_->from_cache(layer); }

 private:
  std::shared_ptr<MomentSource> text_;
  std::shared_ptr<MomentSource> entities_;
  double weight_;
};

}  // namespace lancet
