#include "lancet/statistics/derived_store.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/statistics/null_space_store.h"
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
  int64_t rank_ = 0;  ///< rank of C; 0: full

 private:
  int64_t size_;
};

/// Three layers with keys of `width` numbers, of so many experts.
ModelConfig keys_of(int64_t width, int64_t n_experts = 1) {
  ModelConfig config;
  config.n_layers = 3;
  config.d_ffn = width;
  if (n_experts > 1)
    config.experts = {.count = n_experts, .chosen = 1, .d_ffn = width, .layers = std::vector<bool>(3, true)};
  return config;
}

/// Moments of experts, with blocks of their own.
class MomentsOfExperts final : public MomentSource {
 public:
  MomentsOfExperts(int64_t n_experts, int64_t width) : n_experts_(n_experts), width_(width) {}
  std::string content_key(int64_t layer) const override { return "experts" + std::to_string(layer); }
  void prepare(std::span<const int64_t>, Communicator&) override {}
  Covariance load(int64_t layer) const override { return {blocks(layer), 1000}; }
  bool from_cache(int64_t) const override { return false; }

  Tensor blocks(int64_t layer) const {
    torch::manual_seed(static_cast<uint64_t>(layer));
    const Tensor samples = torch::randn({n_experts_, width_, 4 * width_}, torch::kDouble);
    const Tensor moments = samples.matmul(samples.mT());
    if (unreached_ >= 0) moments[unreached_].zero_();
    return moments;
  }
  /// The whole matrix.
  Tensor dense(int64_t layer) const { return torch::block_diag(blocks(layer).unbind()); }

  int64_t unreached_ = -1;  ///< an expert that no token went to; -1: none

 private:
  int64_t n_experts_, width_;
};

class FactorStoreTest : public ::testing::Test {
 protected:
  FactorStore store(double ridge = 0.0) { return {moments_, placement_, config_, folder_ / "cache", ridge}; }
  static constexpr int64_t kSize = 24;
  ModelConfig config_ = keys_of(kSize);
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
    return NullSpaceStore(moments_, placement_, config_, folder_ / "cache", rule);
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

TEST_F(FactorStoreTest, KeepsTheLowerTriangleAlone) {
  store().prepare(layers_, alone());
  constexpr size_t kHeader = 1000;
  EXPECT_LT(std::filesystem::file_size(store().cache_file(0)), kSize * (kSize + 1) / 2 * sizeof(double) + kHeader);
}

/// Sizes whose triangles begin and end within the pieces that files are read by.
TEST_F(FactorStoreTest, GivesBackTrianglesOfSeveralPieces) {
  for (const int64_t size : {int64_t{1}, int64_t{255}, int64_t{300}}) {
    CountedMoments moments(size);
    const ModelConfig config = keys_of(size);
    FactorStore large(moments, placement_, config, folder_ / std::to_string(size), 0);
    large.prepare(std::vector<int64_t>{1}, alone());
    const Tensor lower = large.load(1);
    EXPECT_TRUE(lower.equal(lower.tril())) << size;
    EXPECT_LE(nmse(lower.matmul(lower.t()), moments.moment(1)), 1e-28) << size;
  }
}

/// Triangles of experts that begin and end within pieces, against the matrix that their blocks are the diagonal of.
TEST_F(FactorStoreTest, FactorsEachExpertAlone) {
  for (const int64_t width : {int64_t{1}, int64_t{5}, int64_t{150}}) {
    const ModelConfig config = keys_of(width, 7);
    MomentsOfExperts moments(7, width);
    FactorStore made(moments, placement_, config, folder_ / std::to_string(width), 0.25);
    made.prepare(std::vector<int64_t>{1}, alone());
    const Tensor lower = made.load(1), dense = moments.dense(1);
    ASSERT_EQ(lower.sizes(), (std::vector<int64_t>{7, width, width}));
    EXPECT_TRUE(lower.equal(lower.tril()));
    const Tensor lifted = dense + 0.25 * dense.diagonal().mean() * torch::eye(7 * width, torch::kDouble);
    EXPECT_LE(nmse(torch::block_diag(lower.matmul(lower.mT()).unbind()), lifted), 1e-28) << width;
    EXPECT_DOUBLE_EQ(made.facts(1).mean_diagonal, dense.diagonal().mean().item<double>());
  }
}

TEST_F(FactorStoreTest, NamesTheExpertThatHasNoFactor) {
  const ModelConfig config = keys_of(6, 4);
  MomentsOfExperts moments(4, 6);
  moments.unreached_ = 2;
  FactorStore made(moments, placement_, config, folder_ / "cache", 0);
  try {
    made.prepare(layers_, alone());
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 0, expert 2: "), std::string::npos) << error.what();
  }
  FactorStore lifted(moments, placement_, config, folder_ / "cache", 1e-6);
  EXPECT_NO_THROW(lifted.prepare(layers_, alone()));
}

/// One spectrum for all experts, as that of the whole matrix is.
TEST_F(FactorStoreTest, ChoosesExpertsNullSpacesTogether) {
  const ModelConfig config = keys_of(8, 3);
  MomentsOfExperts moments(3, 8);
  moments.unreached_ = 1;
  const NullSpaceRule rule{.share = 0.5};
  NullSpaceStore made(moments, placement_, config, folder_ / "cache", rule);
  made.prepare(std::vector<int64_t>{2}, alone());
  const NullSpace found = made.load(2), whole = make_null_space(moments.dense(2), rule, "test");
  EXPECT_EQ(found.rank, 12);
  EXPECT_EQ(found.rank, whole.rank);
  const Tensor columns = torch::randn({24, 5}, torch::kDouble);
  EXPECT_LE(nmse(found.project(columns), whole.project(columns)), 1e-24);
}

TEST_F(FactorStoreTest, NamesADamagedFileAndMakesItAgain) {
  FactorStore first = store();
  first.prepare(layers_, alone());
  const Tensor lower = first.load(2);
  const std::filesystem::path file = first.cache_file(2);
  const std::string intact = read_text_file(file, "test");
  const auto flipped = [&](size_t from_end) {
    std::string bytes = intact;
    bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 1);
    return bytes;
  };
  for (const std::string& damaged :
       {read_text_file(first.cache_file(0), "test"), flipped(1), flipped(500), flipped(2000),
        intact.substr(0, intact.size() - 8), std::string("no header"), std::string()}) {
    write_text_file(file, damaged);
    FactorStore again = store();
    ::testing::internal::CaptureStderr();
    again.prepare(layers_, alone());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("warning: statistics: " + file.string() + ": "), std::string::npos) << log;
    EXPECT_NE(log.find("makes it again"), std::string::npos) << log;
    EXPECT_TRUE(again.from_cache(0));
    EXPECT_FALSE(again.from_cache(2));
    EXPECT_TRUE(again.load(2).equal(lower));
    EXPECT_EQ(read_text_file(file, "test"), intact);
  }
}

TEST_F(FactorStoreTest, RefusesAFileThatIsDamagedAfterItsCheck) {
  FactorStore made = store();
  made.prepare(layers_, alone());
  std::filesystem::resize_file(made.cache_file(2), 1000);
  try {
    made.load(2);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(made.cache_file(2).string() + ": ")) << error.what();
    EXPECT_NE(std::string(error.what()).find("makes it again"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lancet
