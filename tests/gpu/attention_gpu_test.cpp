// Attention on a device against the host's in f64, with gradients: causal, of few queries after a prefix, packed.
#include "lancet/kernels/attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/kernels/ragged_attention.h"
#include "support/on_device.h"
#include "support/tiny_model.h"
#include "support/varlen_reference.h"

namespace lancet {
namespace {

using testing::numbers;
using Tensors = std::vector<Tensor>;

class AttentionOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(AttentionOnDevice);

TEST_P(AttentionOnDevice, CausalIsTheHosts) {
  for (const int64_t dim : {64, 128})
    testing::expect_as_on_the_host(
        device(),
        [dim](const Tensors& in) {
          return grouped_attention(in[0], {in[1], in[2]}, {}, {}, usual_rule(dim));
        },
        {numbers({2, 70, 4, dim}, 1), numbers({2, 70, 2, dim}, 2), numbers({2, 70, 2, dim}, 3)});
}

TEST_P(AttentionOnDevice, OfFewAndManyQueriesAfterAPrefixIsTheHosts) {
  constexpr int64_t kRows = 3, kFresh = 6, kPrefix = 5, kHeads = 4, kKvHeads = 2, kDim = 64;
  for (const int64_t queries : {1, 4, 40}) {
    Tensor mask = numbers({kRows, 1, queries, kPrefix + kFresh}, 13) > 0;
    mask.select(3, kPrefix).fill_(true);  // every query sees something
    const auto rounded = [](uint64_t seed) {
      return numbers({kRows, kKvHeads, kPrefix, kDim}, seed).to(at::kBFloat16);
    };
    const auto ours = [&](const Tensors& in) {
      const KeyValuePair prefix{rounded(11).to(in[0].options()), rounded(12).to(in[0].options())};
      return grouped_attention(in[0], {in[1], in[2]}, prefix, mask.to(in[0].device()), usual_rule(kDim));
    };
    testing::expect_as_on_the_host(
        device(), ours,
        {numbers({kRows, queries, kHeads, kDim}, 14), numbers({kRows, kFresh, kKvHeads, kDim}, 15),
         numbers({kRows, kFresh, kKvHeads, kDim}, 16)});
  }
}

/// Heads of 128-bit packs with sinks, of numbers one by one, and the widest; with a window and a cap.
TEST_P(AttentionOnDevice, OfRaggedRowsIsTheHosts) {
  RaggedLayout layout;
  for (int64_t row = 0; row < 70; ++row) {
    layout.tokens.push_back(1 + row % 9);
    layout.earlier.emplace_back();
    for (int64_t i = 0; i < row % 40; ++i) layout.earlier.back().push_back((row * 7 + i) % 60);
  }
  for (int64_t token = 0; token < layout.n_tokens(); ++token)
    if (token % 5 != 3) layout.queries.push_back(token);
  const auto n_queries = static_cast<int64_t>(layout.queries.size());
  for (const auto& [heads, kv_heads, dim, window] :
       std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>{{8, 2, 128, 0}, {4, 4, 37, 6}, {4, 1, 256, 0}}) {
    const auto rounded = [kv_heads = kv_heads, dim = dim](uint64_t seed) {
      return numbers({kv_heads, 64, dim}, seed).to(at::kBFloat16);
    };
    layout.window = window;
    const Tensor sinks_H = dim == 128 ? 3 * numbers({heads}, 36) : Tensor();
    const auto ours = [&, scale = usual_rule(dim).scale, cap = window > 0 ? 20.0 : 0.0](const Tensors& in) {
      const AttentionRule rule{scale, cap, sinks_H.defined() ? sinks_H.to(in[0].device()) : Tensor()};
      const KeyValuePair pool{rounded(31).to(in[0].options()).narrow(1, 0, 60),
                              rounded(32).to(in[0].options()).narrow(1, 0, 60)};
      return ragged_attention(in[0], {in[1], in[2]}, pool, ragged_rows(layout, in[0].device(), in[0].scalar_type()),
                              rule);
    };
    testing::expect_as_on_the_host(
        device(), ours,
        {numbers({n_queries, heads, dim}, 33), numbers({layout.n_tokens(), kv_heads, dim}, 34),
         numbers({layout.n_tokens(), kv_heads, dim}, 35)});
  }
}

/// One launch for documents of all lengths, where this GPU has the kernel.
TEST_P(AttentionOnDevice, OfDocumentsOfAnyLengthsInOneLaunchIsTheHosts) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> lengths{3, 3, 1, 90, 17, 400, 2, 1, 64};
  const DocumentBounds there = document_bounds(lengths, device()), here = document_bounds(lengths, Placement::host());
  const int64_t places = here.bounds[-1].item<int>();
  for (const auto& [heads, kv_heads, dim] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{8, 2, 128}, {4, 4, 64}, {6, 2, 40}, {4, 1, 256}}) {
    const auto rounded = [&, dim = dim](int64_t n_heads, uint64_t seed) {
      return testing::numbers({places, n_heads, dim}, seed).to(at::kBFloat16);
    };
    const Tensor query = rounded(heads, 21), key = rounded(kv_heads, 22), value = rounded(kv_heads, 23);
    const Tensor query_there = query.to(device()), key_there = key.to(device()), value_there = value.to(device());
    if (!fits_varlen_kernel(varlen_case(query_there, key_there, value_there, there)))
      GTEST_SKIP() << device() << " has no kernel for documents of any lengths: runs of equal ones are looped over";
    const Tensor exact =
        testing::plain_varlen(query.to(at::kDouble), key.to(at::kDouble), value.to(at::kDouble), here, 0.2);
    EXPECT_LE(testing::nmse(varlen_attention(query_there, key_there, value_there, there, 0.2), exact), 1e-4)
        << heads << " heads of " << dim;
  }
}

/// Documents of several lengths that share their beginnings, through all layers.
TEST_P(AttentionOnDevice, PackedDocumentsAreTheHostsDocumentsOneByOne) {
  const testing::TinyModel tiny({.d_model = 64, .n_heads = 4, .n_kv_heads = 2});
  std::vector<std::vector<TokenId>> documents;
  for (int64_t i = 0; i < 40; ++i) {
    documents.emplace_back();
    for (int64_t t = 0; t < 3 + i / 4; ++t) documents.back().push_back(static_cast<TokenId>(t < 2 ? 1 + t : i * 7 + t));
  }
  const std::vector<std::span<const TokenId>> spans(documents.begin(), documents.end());
  const TokenBatch packed = make_packed_batch(spans);
  const torch::NoGradGuard no_grad;
  const auto run = [](const CausalLM& model, const TokenBatch& batch) {
    return model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())
        .to(Placement::host());
  };
  constexpr testing::Precision kForward[] = {{at::kDouble, 1e-24}, {at::kFloat, 1e-9}, {at::kBFloat16, 1e-2}};
  const CausalLM exact = tiny.load(at::kDouble);
  for (const testing::Precision& precision : kForward) {
    const Tensor rows_TD = run(tiny.load(precision.type, {device()}), packed)[0];
    const Tensor places_PD =
        packed.sequence.places_P.defined() ? rows_TD.index_select(0, packed.sequence.places_P) : rows_TD;
    int64_t place = 0;
    for (const std::vector<TokenId>& document : documents) {
      const int64_t length = static_cast<int64_t>(document.size());
      const Tensor alone_TD = run(exact, make_batch(std::span(&document, 1)))[0];
      EXPECT_LE(testing::nmse(places_PD.narrow(0, place, length), alone_TD), precision.most_nmse)
          << at::toString(precision.type) << ", " << length << " tokens";
      place += length;
    }
    EXPECT_EQ(place, places_PD.size(0));
  }
}

}  // namespace
}  // namespace lancet
