// Edits on a device beside the CPU's.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "lancet/core/strings.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::nmse;
using testing::TinyModel;

class EditOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(EditOnDevice);

/// The sum of all changes by two batches, the second with the state that the first left; on the host.
std::vector<Tensor> changes_by(const TinyModel& tiny, const std::string& yaml, at::ScalarType type, at::Device device) {
  CausalLM model = tiny.load(type, {device});
  const auto diagonal = [&](int64_t) {
    return torch::diag(torch::linspace(0.5, 2.0, tiny.config.d_ffn, torch::kDouble)).to(device);
  };
  const EditContext context(
      model, *tiny.tokenizer, {"{}", "I know. {}"},
      {.factor = diagonal, .null_space = [&](int64_t l) { return make_null_space(diagonal(l), {1.0}, "test"); }},
      {alone()});
  const std::vector<EditRequest> requests = testing::some_requests(5);
  const auto editor = testing::editor_from(yaml);
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  editor->edit(context, std::span(requests).first(3), state, transaction);
  editor->edit(context, std::span(requests).subspan(3), state, transaction);
  editor->finish(context, transaction);
  std::vector<Tensor> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    EXPECT_EQ(entry.master.device().type(), device.type());
    changes.push_back((entry.master - entry.original).to(Placement::host(), at::kDouble));
  }
  return changes;
}

/// f64: equal to rounding, which Adam's division by small gradients enlarges.
constexpr double kExactEdit = 1e-18;
/// f32, bf16: at most so many `times` as far from the CPU's f64 as the CPU's own result in that type, which itself is
/// at most `most_nmse` away. Another order of sums makes ten times as much of f32's rounding; TF32 makes thousands. A
/// change of zeros has 1.
constexpr double kUnrelated = 0.5;
struct RoundedEdit {
  at::ScalarType type;
  double most_nmse;
  double times;
};
constexpr RoundedEdit kRoundedEdits[] = {{at::kFloat, 1e-6, 100}, {at::kBFloat16, 0.2, 4}};

void expect_the_cpus_edit(at::Device device, const std::string& yaml) {
  const TinyModel tiny;
  const std::vector<Tensor> exact = changes_by(tiny, yaml, at::kDouble, Placement::host());
  const std::vector<Tensor> same = changes_by(tiny, yaml, at::kDouble, device);
  ASSERT_FALSE(exact.empty());
  ASSERT_EQ(same.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_GT(exact[i].norm().item<double>(), 0);
    EXPECT_LE(nmse(same[i], exact[i]), kExactEdit) << "f64, weight " << i;
  }
  for (const RoundedEdit& rounded : kRoundedEdits) {
    const std::vector<Tensor> host = changes_by(tiny, yaml, rounded.type, Placement::host());
    const std::vector<Tensor> ours = changes_by(tiny, yaml, rounded.type, device);
    ASSERT_EQ(ours.size(), exact.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      const double of_host = nmse(host[i], exact[i]), of_device = nmse(ours[i], exact[i]);
      const std::string where = cat(at::toString(rounded.type), ", weight ", i, ": the host's own ", of_host);
      EXPECT_LE(of_host, rounded.most_nmse) << where;
      EXPECT_LE(of_device, std::clamp(rounded.times * of_host, kExactEdit, kUnrelated)) << where;
      ::testing::Test::RecordProperty(cat(at::toString(rounded.type), "_", i), cat(of_device, " host ", of_host));
    }
  }
}

constexpr const char* kSteps = "values: {steps: 4, lr: 0.1}, contexts: ['{}', 'I know. {}']}";

TEST_P(EditOnDevice, MemitIsTheCpus) {
  expect_the_cpus_edit(device(),
                       cat("{method: memit, layers: [0, 1, 2], covariance_weight: 20, history: true, ", kSteps));
}

TEST_P(EditOnDevice, AlphaEditIsTheCpus) {
  expect_the_cpus_edit(device(), cat("{method: alphaedit, layers: [0, 2], null_space_below: 1.0, ", kSteps));
}

TEST_P(EditOnDevice, FineTuningIsTheCpus) {
  expect_the_cpus_edit(device(), "{method: ft-m, modules: {up: [0], down: [3]}, steps: 3, weight_decay: 0.1}");
}

TEST_P(EditOnDevice, UltraEditIsTheCpus) {
  expect_the_cpus_edit(device(), "{method: ultraedit, modules: {gate: [0, 2], down: [3]}, lr: 1e-3, batch: 2}");
}

/// Runs from statistics to generation, in f64; layers on the device, and before or after those of the host.
TEST_P(EditOnDevice, AWholeEditIsTheCpusInEveryPlacement) {
  const TinyModel tiny;
  const at::Device host = Placement::host();
  const EditRun cpu = testing::run_edit(tiny, {host}, alone());
  for (const std::vector<at::Device>& devices :
       {std::vector{device()}, std::vector{device(), host}, std::vector{host, device()}}) {
    const EditRun ours = testing::run_edit(tiny, devices, alone());
    const std::string where = plan_placement(tiny.config.n_layers, devices, at::kDouble).description();
    EXPECT_LE(nmse(ours.logits, cpu.logits), 1e-18) << where;
    EXPECT_EQ(ours.generated, cpu.generated) << where;
    EXPECT_EQ(ours.continuations, cpu.continuations) << where;
    ASSERT_EQ(ours.covariances.size(), cpu.covariances.size());
    for (size_t i = 0; i < cpu.covariances.size(); ++i)
      EXPECT_LE(nmse(ours.covariances[i].moment_FF, cpu.covariances[i].moment_FF), 1e-20) << where;
    ASSERT_EQ(ours.deltas.size(), cpu.deltas.size());
    for (size_t i = 0; i < cpu.deltas.size(); ++i)
      EXPECT_LE(nmse(ours.deltas[i].second, cpu.deltas[i].second), kExactEdit) << where;
    for (const char* metric : {"efficacy_argmax", "efficacy_prob"})
      EXPECT_EQ(ours.metrics.at(metric).sum, cpu.metrics.at(metric).sum) << where;
  }
}

}  // namespace
}  // namespace lancet
