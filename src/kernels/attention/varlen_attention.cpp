#include "lancet/kernels/varlen_attention.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// The kernel's own limits (torch 2.11's FlashAttention-2).
constexpr int64_t kLeastCapability = 80, kMostHeadDim = 256, kHeadDimStep = 8;

/// The kernel wants the elements of a head side by side.
Tensor with_dense_channels(const Tensor& x_PHC) { return x_PHC.stride(2) == 1 ? x_PHC : x_PHC.contiguous(); }

}  // namespace

DocumentBounds document_bounds(std::span<const int64_t> lengths, at::Device device) {
  const auto n = static_cast<int64_t>(lengths.size());
  Tensor bounds = torch::zeros({n + 1}, torch::kInt);
  auto* numbers = bounds.mutable_data_ptr<int32_t>();
  int64_t end = 0, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    end += lengths[static_cast<size_t>(i)];
    most = std::max(most, lengths[static_cast<size_t>(i)]);
    if (end > std::numeric_limits<int32_t>::max())
      throw std::logic_error(cat("packed documents: more than ", std::numeric_limits<int32_t>::max(), " places"));
    numbers[i + 1] = static_cast<int32_t>(end);
  }
  return {sent_to(device, bounds), most};
}

bool fits_varlen_kernel(const VarlenCase& attention) {
  const bool has_type = attention.type == at::kBFloat16 || attention.type == at::kHalf;
  const bool has_heads = attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0 &&
                         attention.head_dim <= kMostHeadDim && attention.head_dim % kHeadDimStep == 0;
  // Its causal mask lets a document's last query see the last key: right where all tokens are queries. Of documents of
  // one token each torch takes another kernel.
  const bool has_queries = attention.every_query && attention.most_tokens > 1;
  if (attention.bends_scores || !attention.sees_all_before) return false;
  return attention.capability >= kLeastCapability && has_type && has_heads && has_queries && !attention.needs_gradients;
}

VarlenCase varlen_case(const Tensor& query, const Tensor& key, const Tensor& value, const DocumentBounds& documents) {
  const bool has_gradients = query.requires_grad() || key.requires_grad() || value.requires_grad();
  return {.type = query.scalar_type(),
          .capability = compute_capability(query.device()),
          .heads = query.size(-2),
          .kv_heads = key.size(-2),
          .head_dim = query.size(-1),
          .most_tokens = documents.most_tokens,
          .every_query = true,
          .needs_gradients = torch::GradMode::is_enabled() && has_gradients,
          .sees_all_before = true,
          .bends_scores = false};
}

Tensor varlen_attention(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                        const DocumentBounds& documents, double scale) {
  return std::get<0>(at::_flash_attention_forward(
      with_dense_channels(query_PHC), with_dense_channels(key_PKC), with_dense_channels(value_PKC), documents.bounds,
      documents.bounds, documents.most_tokens, documents.most_tokens, /*dropout_p=*/0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, scale));
}

}  // namespace lancet
