#include "lancet/training/activations.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <stdexcept>

#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactF64;
using testing::kRows;
using testing::nmse;
using testing::TinyModel;

/// kRows, looked up in their middle.
struct Prompts {
  std::vector<LocatedPrompt> prompts;
  std::vector<const LocatedPrompt*> rows;

  Prompts() {
    for (const auto& ids : kRows) prompts.push_back({ids, static_cast<int64_t>(ids.size()) / 2});
    for (const LocatedPrompt& prompt : prompts) rows.push_back(&prompt);
  }
};

TEST(CollectAt, EqualsTheWholePassAtTheLookupTokens) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const Prompts some;
  const std::vector<const LocatedPrompt*>& rows = some.rows;
  const TokenBatch batch = make_batch(kRows);
  for (const HookPoint point : {HookPoint::kBlockIn, HookPoint::kAttnIn, HookPoint::kAttnKey, HookPoint::kAttnOut,
                                HookPoint::kMlpIn, HookPoint::kMlpKey, HookPoint::kBlockOut}) {
    Tensor whole;
    HookSet watch;
    watch.observe({point, 2}, [&](const Tensor& value) { whole = value; });
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), watch);
    const Tensor collected = collect_at(model, rows, {point, 2}, alone());
    ASSERT_EQ(collected.sizes(), at::IntArrayRef({3, whole.size(2)}));
    for (size_t row = 0; row < rows.size(); ++row)
      EXPECT_LE(nmse(collected[static_cast<int64_t>(row)], whole[static_cast<int64_t>(row)][rows[row]->lookup]),
                kExactF64)
          << site_text({point, 2});
  }
}

/// Layers are edited from below, and what is asked for is what whole passes give.
TEST(LookupStates, EqualWholePassesWhileLayersAreEdited) {
  const TinyModel tiny;
  const Prompts some;
  const std::vector<const LocatedPrompt*>& rows = some.rows;
  const HookSite last{HookPoint::kBlockOut, tiny.config.n_layers - 1};
  for (const int64_t kept_tokens : {int64_t{0}, kKeptTokens}) {
    CausalLM model = tiny.load();
    LookupStates states(model, rows, kept_tokens);
    for (int64_t layer = 1; layer < tiny.config.n_layers; ++layer) {
      states.keep_from(layer);
      for (const HookSite site : {HookSite{HookPoint::kMlpKey, layer}, last})
        EXPECT_TRUE(states.collect(site, alone()).equal(collect_at(model, rows, site, alone()))) << site_text(site);
      const WeightId edited{WeightKind::kDown, layer};
      model.set_weight(edited, model.weight(edited) * 1.5);
    }
  }
}

TEST(LookupStates, DoNotRunAgainWhatLiesBelow) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const LocatedPrompt prompt{kRows[0], 1};
  LookupStates kept(model, {&prompt}), too_long(model, {&prompt}, 1);
  const HookSite key{HookPoint::kMlpKey, 1};
  for (LookupStates* states : {&kept, &too_long}) states->keep_from(1);
  const Tensor before = kept.collect(key, alone());
  EXPECT_TRUE(too_long.collect(key, alone()).equal(before));
  const WeightId below{WeightKind::kDown, 0};
  model.set_weight(below, model.weight(below) * 2);  // which a caller must not do: it shows what is run
  EXPECT_TRUE(kept.collect(key, alone()).equal(before));
  EXPECT_FALSE(too_long.collect(key, alone()).equal(before));
  EXPECT_THROW(kept.collect({HookPoint::kMlpKey, 0}, alone()), std::logic_error);
}

}  // namespace
}  // namespace lancet
