#include "transforms/Prune/HeadBasis.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <complex>
#include <numbers>

using namespace mlir;
using namespace mlir::llm;

using Complex = std::complex<double>;

/// What is added to the weights of channels, as a share of their mean: directions that count for nothing still have an
/// inverse.
static constexpr double kDamping = 1e-9;

/// An orthogonal map that spreads each direction over all channels (a discrete cosine transform): principal directions
/// fall off steeply, which few bits of a cache would not bear.
static Eigen::MatrixXd spread(Eigen::Index size) {
  Eigen::MatrixXd map(size, size);
  for (Eigen::Index k = 0; k < size; ++k)
    for (Eigen::Index i = 0; i < size; ++i)
      map(k, i) = std::sqrt((k ? 2.0 : 1.0) / double(size)) *
                  std::cos(std::numbers::pi * (double(i) + 0.5) * double(k) / double(size));
  return map.transpose();
}

namespace {

struct Energy {
  double all = 0, kept = 0;
};

} // namespace

/// One complex number of each head, channels a and b: the first eigenvector of their second moments.
static bool mergePair(const Eigen::MatrixXd &moments, ArrayRef<Eigen::MatrixXd> weights, int64_t a, int64_t b,
                      HeadBasis &basis, Energy &energy) {
  const auto heads = Eigen::Index(weights.size()), width = weights[0].rows();
  Eigen::VectorXd scale(heads);
  double mean = 0;
  for (Eigen::Index g = 0; g < heads; ++g)
    mean += scale(g) = weights[size_t(g)](a, a) + weights[size_t(g)](b, b);
  scale = (scale.array() + kDamping * mean / double(heads) + 1e-300).sqrt();
  Eigen::MatrixXcd square(heads, heads);
  for (Eigen::Index g = 0; g < heads; ++g)
    for (Eigen::Index h = 0; h < heads; ++h) {
      const auto at = [&](int64_t i, int64_t j) { return moments(g * width + i, h * width + j); };
      square(g, h) = scale(g) * scale(h) * Complex(at(a, a) + at(b, b), at(b, a) - at(a, b));
    }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd> solver(square);
  if (solver.info() != Eigen::Success)
    return false;
  energy.all += solver.eigenvalues().sum(), energy.kept += solver.eigenvalues()(heads - 1);
  const Eigen::VectorXcd direction = solver.eigenvectors().col(heads - 1);
  const auto set = [&](Eigen::MatrixXd &map, Complex factor) {
    map(a, a) = map(b, b) = factor.real();
    map(a, b) = -factor.imag(), map(b, a) = factor.imag();
  };
  for (Eigen::Index g = 0; g < heads; ++g) {
    set(basis.into[size_t(g)], std::conj(direction(g)) * scale(g));
    set(basis.from[size_t(g)], direction(g) / scale(g));
  }
  return true;
}

/// Channels that mix freely: as many principal directions as one head has of them.
static bool mergeRest(const Eigen::MatrixXd &moments, ArrayRef<Eigen::MatrixXd> weights, ArrayRef<int64_t> channels,
                      HeadBasis &basis, Energy &energy) {
  const auto heads = Eigen::Index(weights.size()), width = weights[0].rows(), R = Eigen::Index(channels.size());
  const auto part = [&](const Eigen::MatrixXd &of, Eigen::Index row, Eigen::Index column) {
    Eigen::MatrixXd chosen(R, R);
    for (Eigen::Index i = 0; i < R; ++i)
      for (Eigen::Index j = 0; j < R; ++j)
        chosen(i, j) = of(row + channels[size_t(i)], column + channels[size_t(j)]);
    return chosen;
  };
  std::vector<Eigen::MatrixXd> roots, inverses;
  for (const Eigen::MatrixXd &weight : weights) {
    Eigen::MatrixXd own = part(weight, 0, 0);
    own.diagonal().array() += kDamping * own.trace() / double(R) + 1e-300;
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(own);
    if (solver.info() != Eigen::Success)
      return false;
    const Eigen::VectorXd root = solver.eigenvalues().cwiseMax(1e-300).cwiseSqrt();
    roots.push_back(solver.eigenvectors() * root.asDiagonal() * solver.eigenvectors().transpose());
    inverses.push_back(solver.eigenvectors() * root.cwiseInverse().asDiagonal() * solver.eigenvectors().transpose());
  }
  Eigen::MatrixXd square(heads * R, heads * R);
  for (Eigen::Index g = 0; g < heads; ++g)
    for (Eigen::Index h = 0; h < heads; ++h)
      square.block(g * R, h * R, R, R) = roots[size_t(g)] * part(moments, g * width, h * width) * roots[size_t(h)];
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(square);
  if (solver.info() != Eigen::Success)
    return false;
  energy.all += solver.eigenvalues().sum(), energy.kept += solver.eigenvalues().tail(R).sum();
  const Eigen::MatrixXd directions = solver.eigenvectors().rightCols(R) * spread(R).transpose();
  for (Eigen::Index g = 0; g < heads; ++g) {
    const Eigen::MatrixXd own = directions.middleRows(g * R, R);
    const Eigen::MatrixXd into = own.transpose() * roots[size_t(g)], from = inverses[size_t(g)] * own;
    for (Eigen::Index i = 0; i < R; ++i)
      for (Eigen::Index j = 0; j < R; ++j) {
        basis.into[size_t(g)](channels[size_t(i)], channels[size_t(j)]) = into(i, j);
        basis.from[size_t(g)](channels[size_t(i)], channels[size_t(j)]) = from(i, j);
      }
  }
  return true;
}

std::optional<HeadBasis> mlir::llm::mergeHeads(const Eigen::MatrixXd &moments, ArrayRef<Eigen::MatrixXd> weights,
                                               ArrayRef<std::pair<int64_t, int64_t>> pairs) {
  const Eigen::Index width = weights[0].rows();
  HeadBasis basis;
  basis.into.assign(weights.size(), Eigen::MatrixXd::Zero(width, width));
  basis.from = basis.into;
  Energy energy;
  std::vector<bool> turned(size_t(width), false);
  for (auto [a, b] : pairs) {
    turned[size_t(a)] = turned[size_t(b)] = true;
    if (!mergePair(moments, weights, a, b, basis, energy))
      return std::nullopt;
  }
  std::vector<int64_t> rest;
  for (Eigen::Index i = 0; i < width; ++i)
    if (!turned[size_t(i)])
      rest.push_back(i);
  if (!rest.empty() && !mergeRest(moments, weights, rest, basis, energy))
    return std::nullopt;
  basis.lost = energy.all > 0 ? std::max(0.0, 1 - energy.kept / energy.all) : 0;
  return basis;
}
