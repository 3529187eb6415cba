#include "lancet/models/hooks.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <stdexcept>
#include <string>

#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactF64;
using testing::kRows;
using testing::nmse;
using testing::TinyModel;

TEST(HookSet, SeesTheKeyAndCanReplaceTheOutput) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  Tensor key, out;
  HookSet watch;
  watch.observe({HookPoint::kMlpKey, 2}, [&](const Tensor& value) { key = value; });
  watch.observe({HookPoint::kMlpOut, 2}, [&](const Tensor& value) { out = value; });
  const Tensor plain =
      model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), watch);
  EXPECT_LE(nmse(at::linear(key, model.weight({WeightKind::kDown, 2})), out), kExactF64);

  HookSet same, changed;
  same.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return value.clone(); });
  changed.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return 2 * value; });
  EXPECT_TRUE(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), same)
                  .equal(plain));
  EXPECT_FALSE(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), changed)
                   .equal(plain));
}

TEST(HookSet, SeesWhatAttentionsProjectionsRead) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  Tensor in, normed, heads, out;
  HookSet watch;
  watch.observe({HookPoint::kBlockIn, 2}, [&](const Tensor& value) { in = value; });
  watch.observe({HookPoint::kAttnIn, 2}, [&](const Tensor& value) { normed = value; });
  watch.observe({HookPoint::kAttnKey, 2}, [&](const Tensor& value) { heads = value; });
  watch.observe({HookPoint::kAttnOut, 2}, [&](const Tensor& value) { out = value; });
  const auto run = [&](const HookSet& hooks) {
    return model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
  };
  const Tensor plain = run(watch);
  const Tensor scale = (in.square().mean(-1, /*keepdim=*/true) + model.config().norm_eps).rsqrt();
  EXPECT_LE(nmse(in * scale * model.weight({WeightKind::kAttnNorm, 2}), normed), kExactF64);
  EXPECT_LE(nmse(at::linear(heads, model.weight({WeightKind::kAttnOut, 2})), out), kExactF64);

  for (const HookPoint point : {HookPoint::kAttnIn, HookPoint::kAttnKey}) {
    HookSet same, changed, stopping;
    same.replace({point, 2}, [](const Tensor& value) { return value.clone(); });
    changed.replace({point, 2}, [](const Tensor& value) { return 2 * value; });
    stopping.stop_at({point, 2});
    EXPECT_TRUE(run(same).equal(plain)) << site_text({point, 2});
    EXPECT_FALSE(run(changed).equal(plain)) << site_text({point, 2});
    EXPECT_FALSE(run(stopping).defined()) << site_text({point, 2});
  }
}

TEST(HookSet, StopsThePassAfterASite) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  bool later = false;
  HookSet hooks;
  hooks.stop_at({HookPoint::kMlpKey, 1});
  hooks.observe({HookPoint::kMlpOut, 1}, [&](const Tensor&) { later = true; });
  EXPECT_FALSE(
      model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks).defined());
  EXPECT_FALSE(later);
}

TEST(HookSet, NamesTheSiteOfABadReplacement) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  HookSet hooks;
  hooks.replace({HookPoint::kAttnOut, 3}, [](const Tensor& value) { return value.to(torch::kFloat); });
  try {
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("hook at layer 3, attention output: expected Double"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lancet
