// What readers of an output get is root's on every rank.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/export/output_form.h"
#include "support/edit_setup.h"
#include "support/gptq_model.h"
#include "support/thread_ranks.h"

namespace lancet {
namespace {

constexpr WeightId kChanged{WeightKind::kDown, 1};

/// Reads back a change by more directions than an adapter may have, another on each rank: far more than what they
/// compute for themselves may differ by.
Tensor read_back_on(Communicator& ranks, const testing::TinyModel& tiny, OutputFormat format) {
  CausalLM model = tiny.load(at::kDouble, {Placement::host()}, {{kChanged}});
  WeightTransaction transaction(model);
  at::Generator generator = at::detail::createCPUGenerator(7 + static_cast<uint64_t>(ranks.rank()));
  const auto some = [&](int64_t rows, int64_t columns) {
    return 0.01 * torch::randn({rows, columns}, generator, torch::kDouble);
  };
  transaction.apply(kChanged, LowRankDelta{some(tiny.config.d_model, 600), some(600, tiny.config.d_ffn)});

  const ModelFiles files = open_model(tiny.folder.path(), {});
  const auto editor = testing::editor_from("{method: ft, modules: {down: [1]}}");
  const OutputOptions options{.format = format, .rounding = OutputRounding::kNearest};
  const auto form = make_output_form({options, files, *editor, [](int64_t) { return Tensor(); }});
  const EditContext context(model, *tiny.tokenizer, testing::kContexts, {}, {ranks});
  form->prepare(context, testing::some_requests(3), transaction.entries());
  return form->read_back(transaction.entries().front());
}

TEST(OutputForms, GiveAllRanksRootsBits) {
  const testing::TinyModel tiny = testing::gptq_model();
  for (const OutputFormat format : {OutputFormat::kAdapter, OutputFormat::kQuantised}) {
    std::vector<Tensor> read(3);
    testing::run_ranks(
        3, [&](Communicator& ranks) { read[static_cast<size_t>(ranks.rank())] = read_back_on(ranks, tiny, format); });
    const Tensor single = read_back_on(alone(), tiny, format);
    EXPECT_GT(single.norm().item<double>(), 0);
    for (const Tensor& each : read) EXPECT_TRUE(each.equal(single)) << static_cast<int>(format);
  }
}

}  // namespace
}  // namespace lancet
