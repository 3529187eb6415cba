#include "lancet/edit/factor_store.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/edit/null_space_store.h"
#include "lancet/io/safetensors.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;

/// Moments made by hand: layer l has C = A A^T with a seed of its own. Counts what it is asked for.
class CountedMoments final : public MomentSource {
 public:
  explicit CountedMoments(int64_t size) : size_(size) {}
  std::string content_key(int64_t layer) const override { return "key" + std::to_string(layer); }
  void prepare(std::span<const int64_t> layers, Communicator&) override {
    prepared_.assign(layers.begin(), layers.end());
  }
  Covariance load(int64_t layer) const override {
    ++loads_;
    return {moment(layer), 1000 + layer};
  }
  bool from_cache(int64_t) const override { return false; }

  Tensor moment(int64_t layer) const {
    torch::manual_seed(static_cast<uint64_t>(layer));
    const Tensor samples = torch::randn({size_, rank_ > 0 ? rank_ : 4 * size_}, torch::kDouble);
    return samples.matmul(samples.t());
  }

  std::vector<int64_t> prepared_;
  mutable int loads_ = 0;
  int64_t rank_ = 0;  ///< of C; 0: full

 private:
  int64_t size_;
};

class FactorStoreTest : public ::testing::Test {
 protected:
  FactorStore store(double ridge = 0.0) { return {moments_, placement_, kSize, folder_ / "cache", ridge}; }
  /// The message of the CheckpointError that a fresh store's prepare() throws.
  std::string refusal() {
    FactorStore fresh = store();
    try {
      fresh.prepare(layers_, alone());
    } catch (const CheckpointError& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  static constexpr int64_t kSize = 24;
  Placement placement_ = plan_placement(3, std::vector{Placement::host()}, at::kFloat);
  CountedMoments moments_{kSize};
  TempDir folder_;
  std::vector<int64_t> layers_{0, 2};
};

TEST_F(FactorStoreTest, GivesColumnMajorFactorsOfTheMoments) {
  FactorStore made = store(0.25);
  made.prepare(layers_, alone());
  for (const int64_t layer : layers_) {
    const Tensor moment = moments_.moment(layer), lower = made.load(layer);
    const double mean = moment.trace().item<double>() / static_cast<double>(moment.size(0));
    const Tensor lifted = moment + 0.25 * mean * torch::eye(moment.size(0), torch::kDouble);
    EXPECT_TRUE(lower.t().is_contiguous());
    EXPECT_TRUE(lower.equal(lower.tril()));
    EXPECT_LE(nmse(lower.matmul(lower.t()), lifted), 1e-28);
    EXPECT_EQ(made.facts(layer).tokens, 1000 + layer);
    EXPECT_DOUBLE_EQ(made.facts(layer).mean_diagonal, mean);
  }
}

TEST_F(FactorStoreTest, LoadsNoMomentsWhereTheFactorIsCached) {
  FactorStore made = store();
  made.prepare(std::vector<int64_t>{0}, alone());
  EXPECT_FALSE(made.from_cache(0));
  EXPECT_EQ(moments_.loads_, 1);
  FactorStore again = store();
  again.prepare(layers_, alone());
  EXPECT_EQ(moments_.prepared_, std::vector<int64_t>{2});
  EXPECT_EQ(moments_.loads_, 2);
  EXPECT_TRUE(again.from_cache(0));
  EXPECT_FALSE(again.from_cache(2));
  EXPECT_TRUE(again.load(0).equal(made.load(0)));
}

TEST_F(FactorStoreTest, KeepsAFactorForEachRidge) {
  FactorStore plain = store();
  plain.prepare(layers_, alone());
  // distinct, though they look alike in six digits
  for (const double ridge : {1e-3, 1.0000001e-3}) {
    FactorStore lifted = store(ridge);
    lifted.prepare(layers_, alone());
    EXPECT_FALSE(lifted.from_cache(0));
  }
  FactorStore again = store();
  again.prepare(layers_, alone());
  EXPECT_TRUE(again.from_cache(0));
}

TEST_F(FactorStoreTest, FindsNullSpacesAgainByTheirRule) {
  const auto store_of = [&](const NullSpaceRule& rule) {
    return NullSpaceStore(moments_, placement_, kSize, folder_ / "cache", rule);
  };
  NullSpaceStore made = store_of({.share = 0.75});
  made.prepare(layers_, alone());
  const NullSpace space = made.load(2);
  EXPECT_EQ(space.rank, 18);
  NullSpaceStore again = store_of({.share = 0.75}), other = store_of({.share = 0.5}), same = store_of({space.below});
  for (NullSpaceStore* each : {&again, &other, &same}) each->prepare(std::vector<int64_t>{2}, alone());
  EXPECT_TRUE(again.from_cache(2));
  EXPECT_EQ(again.load(2).below, space.below);
  EXPECT_FALSE(other.from_cache(2));
  EXPECT_EQ(other.load(2).rank, 12);
  EXPECT_FALSE(same.from_cache(2)) << "a threshold of its own";
  EXPECT_TRUE(same.load(2).basis_FQ.equal(space.basis_FQ));
  EXPECT_EQ(same.load(2).below, space.below);
}

TEST_F(FactorStoreTest, WritesNothingWhenThereIsNoFactor) {
  moments_.rank_ = 3;
  FactorStore made = store();
  try {
    made.prepare(layers_, alone());
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 0: "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("statistics.ridge: "), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(made.cache_file(0)));
}

TEST_F(FactorStoreTest, RefusesADamagedFileAndSaysWhichToRemove) {
  store().prepare(layers_, alone());
  const std::filesystem::path file = store().cache_file(2);
  const auto intact = SafetensorsReader::open(file);
  const auto write = [&](const Tensor& matrix, const Metadata& facts) {
    const TensorSource source{"upper",
                              DType::kF64,
                              matrix.sizes().vec(),
                              {static_cast<const std::byte*>(matrix.data_ptr()), matrix.nbytes()}};
    write_safetensors(file, std::span(&source, 1), facts);
  };
  Tensor good = torch::eye(kSize, torch::kDouble);
  Tensor nan = good.clone(), zero = good.clone();
  nan[5][5] = std::nan("");
  zero[7][7] = 0;
  const std::vector<std::function<void()>> damages{
      [&] { write(nan, intact.metadata()); },
      [&] { write(zero, intact.metadata()); },
      [&] { write(torch::eye(4, torch::kDouble), intact.metadata()); },
      [&] {
        write(good, {{"format", "lancet-factor-0"}});
      },
      [&] { write(good, {}); },
      [&] { std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8); },
      [&] { std::filesystem::resize_file(file, 0); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    damages[i]();
    const std::string message = refusal();
    EXPECT_TRUE(message.starts_with(file.string() + ": ")) << i << ": " << message;
    EXPECT_TRUE(message.ends_with(": remove the file, it will be made again")) << i << ": " << message;
  }
  write(good, {{"format", "lancet-factor-1"}, {"tokens", "7x"}});
  FactorStore fresh = store();
  EXPECT_THROW(fresh.facts(2), CheckpointError);
  std::filesystem::remove(file);
  fresh.prepare(layers_, alone());
  EXPECT_FALSE(fresh.from_cache(2));
}

}  // namespace
}  // namespace lancet
