// Solves on the host of models on fake devices: the same bits as with solves on the devices, in whole edits and jobs.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/kernels/gram.h"
#include "lancet/statistics/covariance.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::fake_devices;
using testing::run_edit;
using testing::TinyModel;

constexpr testing::TinyShape kSixDeep{.n_layers = 6};

void expect_same_bits(const EditRun& one, const EditRun& other, const std::string& what) {
  EXPECT_TRUE(one.logits.equal(other.logits)) << what;
  EXPECT_EQ(one.generated, other.generated) << what;
  EXPECT_EQ(one.continuations, other.continuations) << what;
  ASSERT_EQ(one.covariances.size(), other.covariances.size()) << what;
  for (size_t i = 0; i < one.covariances.size(); ++i)
    EXPECT_TRUE(one.covariances[i].moment_FF.equal(other.covariances[i].moment_FF)) << what;
  ASSERT_EQ(one.weights.size(), testing::kEditRunLayers.size()) << what;
  ASSERT_EQ(one.weights.size(), other.weights.size()) << what;
  for (size_t i = 0; i < one.weights.size(); ++i) {
    EXPECT_GT(one.deltas[i].second.norm().item<double>(), 0) << what;
    EXPECT_TRUE(one.deltas[i].second.equal(other.deltas[i].second)) << what << ", weight " << i;
    EXPECT_TRUE(one.weights[i].second.equal(other.weights[i].second)) << what << ", weight " << i;
  }
}

TEST(HostSolves, AWholeEditHasTheSameBits) {
  const TinyModel tiny(kSixDeep);
  const std::vector<at::Device> fake = fake_devices(3);
  const at::Device cpu = Placement::host();
  const auto expect_same = [&](const std::vector<at::Device>& devices, std::optional<Quantiser> quantiser) {
    expect_same_bits(run_edit(tiny, devices, alone(), quantiser, SolveOn::kHost),
                     run_edit(tiny, devices, alone(), quantiser),
                     plan_placement(6, devices, at::kDouble).description());
  };
  for (const std::vector<at::Device>& devices :
       {std::vector{fake[0]}, {fake[0], fake[1]}, fake, {fake[0], cpu}, {cpu, fake[0]}, {fake[0], cpu, fake[1]}})
    expect_same(devices, {});
  for (const std::vector<at::Device>& devices : {fake, {fake[0], cpu, fake[1]}}) expect_same(devices, Quantiser::kNf4);
}

/// Each rank decides by its own machine: all, one or none of them may solve on the host.
TEST(HostSolves, RanksHaveTheSameBitsWhereverEachSolves) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const TinyModel tiny(kSixDeep);
  const auto run_all = [&](const std::vector<SolveOn>& where) {
    std::vector<EditRun> runs(where.size());
    testing::run_ranks(static_cast<int64_t>(where.size()), [&](Communicator& ranks) {
      const auto rank = static_cast<size_t>(ranks.rank());
      runs[rank] = run_edit(tiny, testing::fake_devices(3 * static_cast<int>(rank), 3), ranks, {}, where[rank]);
    });
    return runs;
  };
  const std::vector<EditRun> there = run_all({SolveOn::kDevice, SolveOn::kDevice});
  for (const std::vector<SolveOn>& where : {std::vector{SolveOn::kHost, SolveOn::kHost},
                                            {SolveOn::kHost, SolveOn::kDevice},
                                            {SolveOn::kDevice, SolveOn::kHost}}) {
    const std::vector<EditRun> runs = run_all(where);
    expect_same_bits(runs[0], there[0], "root");
    for (size_t i = 0; i < runs[0].weights.size(); ++i)
      EXPECT_TRUE(runs[1].weights[i].second.equal(runs[0].weights[i].second)) << "grown apart";
  }
}

TEST(HostSolves, SumsThatLieElsewhereHaveTheSameBits) {
  const at::Device device = fake_devices(1)[0];
  const Tensor rows_NF = torch::randn({5000, 300});
  for (const GramProducts products : {GramProducts::kWidened, GramProducts::kSixteenBits}) {
    const auto mean = [&](at::Device sum_device) {
      GramAccumulator sum(300, device, products, sum_device);
      sum.add(rows_NF.to(device, products == GramProducts::kWidened ? at::kFloat : at::kBFloat16));
      EXPECT_EQ(sum.panels().device(), sum_device);
      return std::move(sum).take_mean().to(Placement::host());
    };
    EXPECT_TRUE(mean(Placement::host()).equal(mean(device)));
  }
  GramAccumulator sum(300, device, Placement::host());
  EXPECT_THROW(sum.add(rows_NF), PlacementError) << "rows on the sum's device";
}

class HostTransaction : public ::testing::Test {
 protected:
  static constexpr WeightId kEdited{WeightKind::kDown, 1};

  Tensor weight() const { return model_.weight(kEdited).to(Placement::host()).clone(); }

  TinyModel tiny_;
  CausalLM model_ = tiny_.load(at::kBFloat16, {fake_devices(1)[0]}, {}, SolveOn::kHost);
  const Tensor before_ = weight();
  const DenseDelta delta_{torch::full(before_.sizes(), 1e-4)};
};

/// What the model has follows the transaction, in the model's own memory: a device that is full can be rolled back.
TEST_F(HostTransaction, WritesOverTheModelsOwnTensor) {
  const int64_t live = testing::fake_bytes_live(0);
  testing::reset_fake_peaks();
  {
    WeightTransaction transaction(model_);
    for (int i = 0; i < 3; ++i) transaction.apply(kEdited, delta_);
    const WeightTransaction::Entry& entry = transaction.entries().front();
    EXPECT_EQ(entry.master.device(), Placement::host());
    EXPECT_EQ(entry.original.device(), Placement::host());
    EXPECT_EQ(entry.master.scalar_type(), at::kFloat);
    EXPECT_TRUE(entry.original.equal(before_));
    EXPECT_GT((entry.master - before_.to(at::kFloat)).abs().max().item<double>(), 0);
    EXPECT_TRUE(weight().equal(entry.master.to(at::kBFloat16)));
    transaction.put_unedited();
    EXPECT_TRUE(weight().equal(before_));
    transaction.put_exact();
    EXPECT_TRUE(weight().equal(entry.master.to(at::kBFloat16)));
    transaction.write_as([](const WeightTransaction::Entry& written) { return torch::ones_like(written.master); });
    transaction.round_as_written();
    EXPECT_TRUE(weight().equal(torch::ones_like(before_)));
    EXPECT_TRUE(entry.original.equal(before_)) << "written over";
  }
  EXPECT_TRUE(weight().equal(before_));
  EXPECT_EQ(testing::fake_bytes_peak(0), live);
}

TEST_F(HostTransaction, FiltersSeeTheWeightWhereTheDeltaIs) {
  WeightTransaction transaction(model_);
  int seen = 0;
  transaction.filter_with([&](WeightId, const Tensor& weight, const WeightDelta& delta) {
    EXPECT_EQ(weight.device(), Placement::host());
    ++seen;
    return delta;
  });
  transaction.apply(kEdited, delta_);
  EXPECT_EQ(seen, 1);
}

TEST_F(HostTransaction, ADeltaOnTheWeightsDeviceIsNamed) {
  WeightTransaction transaction(model_);
  try {
    transaction.apply(kEdited, DenseDelta{delta_.full_OI.to(fake_devices(1)[0])});
    FAIL();
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("down_proj.weight: delta: expected on cpu, found on fake:0"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lancet
