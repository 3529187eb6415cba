// The closed forms by the identities that define them.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/editing/solvers.h"
#include "lancet/statistics/derived_store.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactSolve;
using testing::nmse;

/// f64: the identities hold to rounding.
constexpr int64_t kSize = 24;

Tensor random(int64_t rows, int64_t columns) { return torch::randn({rows, columns}, torch::kDouble); }

/// A covariance whose lower half of eigenvalues is tiny.
Tensor covariance() {
  torch::manual_seed(11);
  const Tensor basis = std::get<0>(at::linalg_qr(random(kSize, kSize)));
  const Tensor spectrum = torch::cat({torch::linspace(1e-4, 2e-4, kSize / 3, torch::kDouble),
                                      torch::linspace(1.0, 3.0, kSize - kSize / 3, torch::kDouble)});
  return basis.matmul(spectrum.unsqueeze(1) * basis.t());
}

Tensor factor() {
  return factor_covariance([] { return covariance(); }, 0.0, "test");
}

int64_t rank_of(const Tensor& matrix) {
  const Tensor s = at::linalg_svdvals(matrix);
  return (s > s[0] * 1e-12).sum().item<int64_t>();
}

TEST(SolveEquality, GivesEveryKeyItsValue) {
  const Tensor lower = factor(), keys = random(kSize, 5), residuals = random(7, 5), weight = random(7, kSize);
  const Tensor delta = to_dense(solve_equality({lower, 20.0, 0.0, keys, residuals}).change);
  const Tensor wanted = weight.matmul(keys) + residuals;
  EXPECT_LE(nmse((weight + delta).matmul(keys), wanted), kExactSolve);
  EXPECT_EQ(rank_of(delta), 5);
}

TEST(SolveEquality, IsTheSmallestSuchChangeOnText) {
  // among all changes with Delta K = R the one of least trace(Delta C Delta^T): any other direction costs more
  const Tensor lower = factor(), keys = random(kSize, 3), residuals = random(4, 3);
  const Tensor delta = to_dense(solve_equality({lower, 20.0, 0.0, keys, residuals}).change);
  const Tensor elsewhere =
      random(4, kSize).matmul(torch::eye(kSize, torch::kDouble) - keys.matmul(at::linalg_pinv(keys)));
  EXPECT_LE(delta.matmul(covariance()).mul(elsewhere).sum().abs().item<double>(),
            1e-10 * delta.norm().item<double>() * elsewhere.norm().item<double>());
}

TEST(SolveEquality, WithSlackSatisfiesItsNormalEquations) {
  const Tensor keys = random(kSize, 6), residuals = random(4, 6), system = 20.0 * covariance();
  const Tensor delta = to_dense(solve_equality({factor(), 20.0, 0.1, keys, residuals}).change);
  // Delta = M K^T A^{-1} with M (K^T A^{-1} K + mu I) = R, so Delta K + mu M = R
  const Tensor inner = delta.matmul(system);  // M K^T
  const Tensor m = inner.matmul(at::linalg_pinv(keys.t()));
  EXPECT_LE(nmse(delta.matmul(keys) + 0.1 * m, residuals), kExactSolve);
}

TEST(SolveEquality, OfOneKeyIsTheRankOneUpdate) {
  const Tensor key = random(kSize, 1), residual = random(4, 1);
  const Tensor one = to_dense(solve_rank_one({factor(), key.squeeze(1), key.squeeze(1), residual.squeeze(1)}));
  EXPECT_LE(nmse(to_dense(solve_equality({factor(), 7.0, 0.0, key, residual}).change), one), kExactSolve);
}

TEST(SolveEquality, RefusesKeysThatDependOnEachOther) {
  Tensor keys = random(kSize, 3);
  keys.select(1, 2).copy_(keys.select(1, 0));
  EXPECT_THROW(solve_equality({factor(), 20.0, 0.0, keys, random(4, 3)}), NumericError);
  EXPECT_NO_THROW(solve_equality({factor(), 20.0, 0.1, keys, random(4, 3)}));
}

TEST(LiftFactor, AddsTheIdentity) {
  const Tensor lifted = lift_factor(factor(), 20.0, 0.5);
  const Tensor expected = 20.0 * covariance() + 0.5 * torch::eye(kSize, torch::kDouble);
  EXPECT_LE(nmse(20.0 * lifted.matmul(lifted.t()), expected), kExactSolve);
}

TEST(SolveRankOne, MovesItsKeyByTheResidual) {
  const Tensor direction = random(kSize, 1).squeeze(1), key = random(kSize, 1).squeeze(1);
  const Tensor residual = random(4, 1).squeeze(1);
  for (const Tensor& lower : {factor(), Tensor()}) {
    const Tensor delta = to_dense(solve_rank_one({lower, direction, key, residual}));
    EXPECT_LE(nmse(delta.matmul(key), residual), kExactSolve);
    EXPECT_EQ(rank_of(delta), 1);
    const Tensor expected = lower.defined() ? covariance().matmul(delta[0]) : delta[0];  // is parallel to the direction
    const double product = expected.dot(direction).abs().item<double>();
    EXPECT_NEAR(product, expected.norm().item<double>() * direction.norm().item<double>(), 1e-9 * product);
  }
}

TEST(SolveRankOne, RefusesAKeyThatNoChangeReaches) {
  const Tensor key = torch::eye(kSize, torch::kDouble)[0], direction = torch::eye(kSize, torch::kDouble)[1];
  EXPECT_THROW(solve_rank_one({Tensor(), direction, key, random(4, 1).squeeze(1)}), NumericError);
}

TEST(NullSpace, KeepsTheSmallerBasisOfTheSameProjection) {
  const Tensor c = covariance(), columns = random(kSize, 9);
  const NullSpace few = make_null_space(c, {0.1}, "test"), many = make_null_space(c, {2.9}, "test");
  EXPECT_EQ(few.basis, NullSpace::Basis::kNullSpace);
  EXPECT_EQ(few.basis_FQ.size(1), kSize / 3);
  EXPECT_EQ(many.basis, NullSpace::Basis::kComplement);
  EXPECT_EQ(many.basis_FQ.size(1), kSize - many.rank);
  for (const auto& [space, threshold] : {std::pair{few, 0.1}, std::pair{many, 2.9}}) {
    const auto [spectrum, vectors] = at::linalg_eigh(c);
    const Tensor basis = vectors.slice(1, 0, (spectrum < threshold).sum().item<int64_t>());
    EXPECT_LE(nmse(space.project(columns), basis.matmul(basis.t().matmul(columns))), kExactSolve);
    EXPECT_LE(nmse(space.project(space.project(columns)), space.project(columns)), kExactSolve);
  }
}

TEST(NullSpace, RefusesAThresholdBeyondTheSpectrum) {
  EXPECT_THROW(make_null_space(covariance(), {1e-6}, "layer 0"), NumericError);
  EXPECT_THROW(make_null_space(covariance(), {10.0}, "layer 0"), NumericError);
}

TEST(NullSpace, OfAShareHasAsManyDimensionsAndTheThresholdThatGivesThem) {
  const Tensor c = covariance();
  const Tensor spectrum = std::get<0>(at::linalg_eigh(c));
  for (const auto& [share, rank] : {std::pair{0.75, 18}, std::pair{0.3, 7}, std::pair{1e-6, 1}, std::pair{0.999, 23}}) {
    const NullSpace space = make_null_space(c, {.share = share}, "test");
    EXPECT_EQ(space.rank, rank) << share;
    EXPECT_EQ(space.below, spectrum[rank].item<double>());
    const NullSpace same = make_null_space(c, {space.below}, "test");
    EXPECT_TRUE(space.basis_FQ.equal(same.basis_FQ));
    EXPECT_EQ(same.rank, rank);
    // free of scale, as no threshold is
    EXPECT_EQ(make_null_space(1e-6 * c, {.share = share}, "test").rank, rank);
  }
  EXPECT_THROW(make_null_space(torch::eye(kSize, torch::kDouble), {.share = 0.5}, "test"), NumericError);
}

TEST(SolveNullSpace, LeavesWhatIsKnownAlone) {
  const NullSpace space = make_null_space(covariance(), {0.1}, "test");
  const auto [spectrum, vectors] = at::linalg_eigh(covariance());
  const Tensor known = vectors.slice(1, space.rank);  // K0: what text has
  const Tensor keys = random(kSize, 4), residuals = random(5, 4);
  const Tensor delta = to_dense(solve_null_space({space, 0.5, keys, random(kSize, 3), residuals}));
  EXPECT_LE(delta.matmul(known).norm().item<double>(), 1e-12 * delta.norm().item<double>());
}

TEST(SolveNullSpace, SatisfiesThePublishedSystemInBothSpaces) {
  const NullSpace space = make_null_space(covariance(), {0.1}, "test");
  const Tensor p = space.project(torch::eye(kSize, torch::kDouble));
  for (const int64_t n_history : {0, 3, 40}) {
    const Tensor keys = random(kSize, 4), residuals = random(5, 4);
    const Tensor history = n_history > 0 ? random(kSize, n_history) : Tensor();
    Tensor sum = keys.matmul(keys.t());
    if (n_history > 0) sum = sum + history.matmul(history.t());
    const Tensor system = p.matmul(sum) + 0.5 * torch::eye(kSize, torch::kDouble);
    const Tensor expected = p.matmul(keys).matmul(residuals.t());
    for (const SolveSpace kind : {SolveSpace::kKeys, SolveSpace::kWeights, SolveSpace::kAuto}) {
      const Tensor delta = to_dense(solve_null_space({space, 0.5, keys, history, residuals}, kind));
      EXPECT_LE(nmse(system.matmul(delta.t()), expected), kExactSolve) << n_history;
    }
  }
}

TEST(SolveLeastSquares, PrimalEqualsDual) {
  for (const int64_t tokens : {3, 24, 60}) {
    const Tensor x = random(tokens, kSize), v = random(tokens, 5);
    const Tensor primal = at::linalg_solve(x.t().matmul(x) + torch::eye(kSize, torch::kDouble), x.t().matmul(v)).t();
    for (const SolveSpace kind : {SolveSpace::kKeys, SolveSpace::kWeights, SolveSpace::kAuto})
      EXPECT_LE(nmse(to_dense(solve_least_squares(x, v, kind)), primal), kExactSolve) << tokens;
  }
}

}  // namespace
}  // namespace lancet
