#include "answer_texts.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/models/generate.h"
#include "lancet/models/spread_rows.h"

namespace lancet {
namespace {

/// Rows of sampled text are numbered: a batch of them is a range.
RowBatches ranges_of(size_t n_rows, int64_t row_tokens) {
  const auto together = static_cast<size_t>(std::max<int64_t>(1, kForwardTokens / std::max<int64_t>(1, row_tokens)));
  RowBatches batches;
  for (size_t row = 0; row < n_rows; ++row) {
    if (row % together == 0) batches.emplace_back();
    batches.back().push_back(static_cast<int64_t>(row));
  }
  return batches;
}

/// Ids as one tensor: of each row how many there are, and these.
Tensor packed_ids(const std::vector<std::vector<TokenId>>& rows, int64_t most) {
  Tensor ids_RX = torch::zeros({static_cast<int64_t>(rows.size()), most + 1}, at::kLong);
  int64_t* at = ids_RX.mutable_data_ptr<int64_t>();
  for (const std::vector<TokenId>& ids : rows) {
    *at = static_cast<int64_t>(ids.size());
    std::copy(ids.begin(), ids.end(), at + 1);
    at += most + 1;
  }
  return ids_RX;
}

GeneratedText to_text(const Tokenizer& tokenizer, std::vector<TokenId> ids, std::span<const TokenId> added) {
  GeneratedText text{{}, tokenizer.decode(added)};
  ids.insert(ids.end(), added.begin(), added.end());
  text.whole = tokenizer.decode(ids);
  return text;
}

/// The texts of one kind of decoding; `places`: where they stand among all.
void answer(std::span<const TextQuestion> texts, const std::vector<size_t>& places, const TextWriter& writer,
            Communicator& communicator, std::vector<std::optional<GeneratedText>>& answers) {
  const bool samples = texts[places.front()].decoding == Decoding::kTopK5;
  std::vector<int64_t> lengths;
  int64_t most = 0;
  for (const size_t place : places) {
    lengths.push_back(static_cast<int64_t>(texts[place].prompt.size()) + texts[place].max_new_tokens);
    most = std::max(most, texts[place].max_new_tokens);
  }
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const RowBatches batches =
      samples ? ranges_of(places.size(), longest) : plan_batches(lengths, {.tokens = kForwardTokens});
  const Tensor ids_NX = spread_rows(communicator, writer.stage, batches, {at::kLong, Placement::host()},
                                    [&](const std::vector<int64_t>& batch) {
                                      std::vector<GenerateRow> rows;
                                      for (const int64_t row : batch) {
                                        const TextQuestion& text = texts[places[static_cast<size_t>(row)]];
                                        rows.push_back({text.prompt, text.max_new_tokens});
                                      }
                                      GenerateOptions options;
                                      if (samples)
                                        options = {.top_k = 5, .first_row = batch.front()};
                                      else
                                        options = {.eos_ids = writer.model.config().eos_ids};
                                      return packed_ids(generate(writer.model, rows, options), most);
                                    });
  const int64_t* at = ids_NX.const_data_ptr<int64_t>();
  for (const size_t place : places) {
    answers[place] = to_text(writer.tokenizer, texts[place].prompt, std::span(at + 1, static_cast<size_t>(at[0])));
    at += most + 1;
  }
}

}  // namespace

void answer_texts(std::span<const TextQuestion> texts, const TextWriter& writer, Communicator& communicator,
                  std::vector<std::optional<GeneratedText>>& answers) {
  for (const Decoding decoding : {Decoding::kGreedy, Decoding::kTopK5}) {
    std::vector<size_t> places;
    for (size_t i = 0; i < texts.size(); ++i)
      if (texts[i].decoding == decoding) places.push_back(i);
    if (!places.empty()) answer(texts, places, writer, communicator, answers);
  }
}

}  // namespace lancet
