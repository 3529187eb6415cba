#include "latent_heads.h"

#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

using enum WeightKind;

/// Returns queries [B, Q, H, C] before they are rotated; undefined if the pass ends at their latent vector.
Tensor plain_queries(const LayerContext& context, const Tensor& x_BQD) {
  const LayerWeights& w = context.weights;
  const LatentConfig& latent = context.config.latent;
  Tensor made_of = x_BQD;
  if (latent.query_rank > 0) {
    made_of = rms_norm(w.linear(x_BQD, kQueryDown), w[kQueryDownNorm], latent.norm_eps);
    if (!context.pass(HookPoint::kQueryVector, made_of)) return {};
  }
  return w.linear(made_of, kQuery).unflatten(2, {context.config.n_heads, context.config.head_dim});
}

}  // namespace

LatentHeads latent_heads(const LayerContext& context, const Tensor& x_BTD) {
  const auto& [config, w, inputs, sequence, hooks, layer] = context;
  const LatentConfig& latent = config.latent;
  const Tensor query_BQHC = plain_queries(context, take_places(x_BTD, inputs.outputs));
  if (!query_BQHC.defined()) return {};
  const Tensor turned_query =
      turned(inputs.rope, query_BQHC.narrow(3, latent.plain_dim, latent.turned_dim).contiguous(), inputs.queries);

  const Tensor down_BTX = w.linear(x_BTD, kKeyValueDown);
  Tensor vector_BTR = rms_norm(down_BTX.narrow(2, 0, latent.rank).contiguous(), w[kKeyValueDownNorm], latent.norm_eps);
  if (!context.pass(HookPoint::kKeyVector, vector_BTR)) return {};
  const Tensor turned_key =
      turned(inputs.rope, down_BTX.narrow(2, latent.rank, latent.turned_dim).unsqueeze(2).contiguous(), inputs.keys);
  const Tensor up_BTHX = w.linear(vector_BTR, kKeyValueUp).unflatten(2, {config.n_heads, -1});
  const Tensor value_BTHV = up_BTHX.narrow(3, latent.plain_dim, latent.value_dim);
  return {torch::cat({query_BQHC.narrow(3, 0, latent.plain_dim), turned_query}, 3),
          torch::cat({up_BTHX.narrow(3, 0, latent.plain_dim), turned_key.expand({-1, -1, config.n_heads, -1})}, 3),
          at::constant_pad_nd(value_BTHV, {0, config.head_dim - latent.value_dim})};
}

}  // namespace lancet
