#include "edit_run.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "edit_setup.h"
#include "lancet/eval/evaluate.h"
#include "lancet/models/generate.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/statistics_store.h"

namespace lancet::testing {
namespace {

void note_weights(const CausalLM& model, const WeightTransaction& transaction, EditRun& run) {
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    EXPECT_EQ(entry.master.device(), model.placement().solve_device(entry.id.layer));
    EXPECT_EQ(model.weight(entry.id).device(), model.placement().device_of(entry.id.layer));
    run.deltas.emplace_back(entry.id, (entry.master - entry.original).to(Placement::host()));
    run.weights.emplace_back(entry.id, model.weight(entry.id).to(Placement::host()));
  }
}

}  // namespace

EditRun run_edit(const TinyModel& tiny, const std::vector<at::Device>& devices, Communicator& communicator,
                 std::optional<Quantiser> quantiser, SolveOn solve_on) {
  QuantiseRule rule{{}, quantiser};
  for (const int64_t layer : kEditRunLayers) rule.edited.push_back({WeightKind::kDown, layer});
  return run_edit(tiny, tiny.load(at::kDouble, devices, rule, solve_on), communicator);
}

EditRun run_edit(const TinyModel& tiny, CausalLM model, Communicator& communicator) {
  const TempDir folder;
  const std::vector<EditRequest> requests = some_requests(6);
  const auto editor = editor_from(
      "{method: memit, layers: [0, 1, 2], covariance_weight: 20, values: {steps: 5, lr: 0.1, batch: 2}, contexts: "
      "['{}', 'I know. {}']}");
  StatisticsOptions options;
  options.corpus = write_corpus(folder.path(), 3000);
  options.tokens = 30'000;  // several chunks
  options.cache = folder / "cache";
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  StatisticsStore moments(model, tiny.checkpoint, corpus, options.cache);
  FactorStore factors(moments, model.placement(), tiny.config, options.cache, 0.0);
  factors.prepare(kEditRunLayers, communicator);  // writes the cache: what is used below has been on disk
  const EditContext context(model, *tiny.tokenizer, editor->contexts()->templates,
                            {.factor = [&](int64_t layer) { return factors.load(layer); }}, {communicator});
  const EvaluationPlan plan(*tiny.tokenizer, requests, {.protocols = {"efficacy", "generation"}},
                            tiny.config.max_positions);
  EditRun run;
  if (communicator.is_root())
    for (const int64_t layer : kEditRunLayers) {
      const Covariance covariance = moments.load(layer);
      run.covariances.push_back({covariance.moment_FF.to(Placement::host()), covariance.tokens});
    }
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  editor->edit(context, requests, state, transaction);
  note_weights(model, transaction, run);
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17, 400, 8, 99}, {1, 5}});
  run.logits =
      model.logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[0])
          .to(Placement::host());
  const Evaluation evaluation = plan.run(model, "test", communicator);
  run.metrics = evaluation.totals;
  run.continuations = evaluation.continuations;
  const GenerateRow row{{1, 17, 400}, 6};
  run.generated = generate(model, std::span(&row, 1), {});
  return run;
}

std::vector<at::Device> fake_devices(int first, int count) {
  std::vector<at::Device> devices;
  for (int i = first; i < first + count; ++i) devices.emplace_back(at::kPrivateUse1, static_cast<at::DeviceIndex>(i));
  return devices;
}

}  // namespace lancet::testing
