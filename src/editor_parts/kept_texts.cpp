#include "lancet/editor_parts/kept_texts.h"

#include <torch/types.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr const char* kIds = "texts.ids";
constexpr const char* kSizes = "texts.sizes";

/// Returns a tensor [rows, n] of i64, filled row by row.
Tensor whole_numbers(const std::vector<int64_t>& values, int64_t rows) {
  return torch::tensor(values, torch::kLong).view({rows, -1});
}

void append(EditorState& state, const char* name, const Tensor& columns) {
  state.tensors[name] = joined_columns(columns_of(state, name), columns);
}

/// Removes the first `n` ids of `ids` and returns them.
std::vector<TokenId> take(std::span<const int64_t>& ids, int64_t n) {
  if (n < 0 || n > std::ssize(ids))
    throw CheckpointError(cat("a stream's state: expected as many tokens in ", kIds, " as ", kSizes, " says"));
  std::vector<TokenId> taken;
  for (const int64_t id : ids.first(static_cast<size_t>(n))) taken.push_back(static_cast<TokenId>(id));
  ids = ids.subspan(static_cast<size_t>(n));
  return taken;
}

}  // namespace

std::vector<TokenizedRequest> kept_texts(const EditorState& state, std::span<const TokenizedRequest> fresh) {
  const Tensor ids = columns_of(state, kIds), sizes = columns_of(state, kSizes);
  if (!ids.defined() || !sizes.defined()) return {};
  const Tensor flat = ids.contiguous();
  std::span<const int64_t> rest(flat.const_data_ptr<int64_t>(), static_cast<size_t>(flat.numel()));
  std::vector<TokenizedRequest> texts;
  for (int64_t i = 0; i < sizes.size(1); ++i) {
    TokenizedRequest& text = texts.emplace_back();
    text.id = cat("number ", i + 1, " of the stream");
    text.prompt = take(rest, sizes[0][i].item<int64_t>());
    text.target = take(rest, sizes[1][i].item<int64_t>());
  }
  std::set<std::vector<TokenId>> answered;
  for (const TokenizedRequest& text : fresh) answered.insert(text.prompt);
  std::vector<TokenizedRequest> kept;
  for (TokenizedRequest& text : std::views::reverse(texts))
    if (answered.insert(text.prompt).second) kept.push_back(std::move(text));
  std::ranges::reverse(kept);
  return kept;
}

void keep_texts(EditorState& state, std::span<const TokenizedRequest> texts) {
  std::vector<int64_t> ids, prompts, targets;
  for (const TokenizedRequest& text : texts) {
    ids.insert(ids.end(), text.prompt.begin(), text.prompt.end());
    ids.insert(ids.end(), text.target.begin(), text.target.end());
    prompts.push_back(std::ssize(text.prompt));
    targets.push_back(std::ssize(text.target));
  }
  prompts.insert(prompts.end(), targets.begin(), targets.end());
  append(state, kIds, whole_numbers(ids, 1));
  append(state, kSizes, whole_numbers(prompts, 2));
}

}  // namespace lancet
