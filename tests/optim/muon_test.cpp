// Muon: the values of a plain computation in fp64, on every mesh and with sharded state.
#include "optim/muon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "models/spec_builder.h"
#include "ops/redistribute.h"
#include "optim/make_optimizer.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using ::testing::UnorderedElementsAre;

constexpr StateSharding kStages[] = {StateSharding::none, StateSharding::optimizer, StateSharding::gradients,
                                     StateSharding::parameters};
constexpr int kSteps = 3;
constexpr double kRate = 0.02, kDecay = 0.1, kClip = 0.5;

// Layers cut along rows and along columns, square, tall and wide; three of each shape, so that two replicas
// get an incomplete deal.
ModelParams small_model() {
  ModelParams model;
  SpecBuilder b(model);
  b.embedding("embed", 24, 8, 1);
  for (int i = 0; i < 3; ++i) {
    const std::string h = "layers." + std::to_string(i);
    for (const char* name : {".attn.q_proj", ".attn.k_proj", ".attn.v_proj", ".attn.o_proj"})
      b.linear(h + name, 8, 8, true, 1);
    b.linear(h + ".mlp.up_proj", 20, 8, true, 1);
    b.linear(h + ".mlp.down_proj", 8, 20, true, 1);
  }
  b.experts({.prefix = "layers.3.mlp.experts", .layer = "up", .count = 3, .out = 6, .in = 10}, 1, "", 0, 0);
  b.norm("norm", 8, true);
  b.linear("lm_head", 24, 8, false, 1);
  return model;
}

using NamedValues = std::map<std::string, std::vector<double>>;

std::vector<float> gradient_of(int step, std::size_t i, i64 n) {
  const std::vector<double> v = redco::testing::Random(100 * step + i).values(n);
  return {v.begin(), v.end()};
}

// The parameters, and the state as "momentum_buffer/NAME". Collective.
NamedValues values_of(const ParamTree& params, const Optimizer& optimizer) {
  NamedValues out;
  for (std::size_t i = 0; i < params.size(); ++i) out[params.specs()[i].name] = to_values(params.values()[i]);
  for (const Optimizer::State& s : optimizer.state())
    for (std::size_t i = 0; i < s.tree.size(); ++i)
      out[s.name + "/" + s.tree.specs()[i].name] = to_values(s.tree.values()[i]);
  return out;
}

// The values after kSteps updates.
NamedValues updated_by(const OptimizerSettings& settings, const Mesh& mesh, StateSharding sharding) {
  const ModelParams model = small_model();
  const auto layouts = shard_specs(model.specs, mesh.mp()).layouts;
  NamedValues out;
  on_mesh(mesh, [&](Context& c) {
    ParamTree params = make_params(model, layouts, {.sharding = sharding, .trains = true});
    initialize(params, 1);
    const auto optimizer = make_optimizer(settings, params, sharding);
    for (int step = 0; step < kSteps; ++step) {
      std::vector<Tensor> grads;
      for (std::size_t i = 0; i < params.size(); ++i) {
        const Tensor& p = params.values()[i];
        grads.push_back(from_values(p.shape(), std::span<const float>(gradient_of(step, i, p.numel())),
                                    state_layout(p, sharding)));
      }
      optimizer->update(params, grads, kRate, kClip);
    }
    NamedValues mine = values_of(params, *optimizer);
    if (c.world().rank() == 0) out = std::move(mine);
  });
  return out;
}

// Row-major matrices.
struct Matrix {
  i64 rows, columns;
  std::vector<double> v;
  double& at(i64 i, i64 j) { return v[i * columns + j]; }
  double at(i64 i, i64 j) const { return v[i * columns + j]; }
};
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (i64 i = 0; i < a.rows; ++i)
    for (i64 k = 0; k < a.columns; ++k)
      for (i64 j = 0; j < b.columns; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}
Matrix flipped(const Matrix& a) {
  Matrix out{a.columns, a.rows, std::vector<double>(a.v.size())};
  for (i64 i = 0; i < a.rows; ++i)
    for (i64 j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  return out;
}

// Jordan et al. 2024, with the products of the rows.
Matrix newton_schulz(Matrix x) {
  double norm = 0;
  for (const double e : x.v) norm += e * e;
  for (double& e : x.v) e /= std::sqrt(norm) + 1e-7;
  for (int n = 0; n < 5; ++n) {
    const Matrix a = times(x, flipped(x)), aa = times(a, a);
    Matrix b = a;
    for (std::size_t i = 0; i < b.v.size(); ++i) b.v[i] = -4.7750 * a.v[i] + 2.0315 * aa.v[i];
    const Matrix bx = times(b, x);
    for (std::size_t i = 0; i < x.v.size(); ++i) x.v[i] = 3.4445 * x.v[i] + bx.v[i];
  }
  return x;
}

// The values of one matrix after kSteps updates, and its momentum. `which`: its gradients are elements
// [offset, offset + rows * columns) of those of parameter i.
std::pair<Matrix, Matrix> by_hand(const MuonSettings& s, Matrix p, std::size_t i, i64 offset, i64 numel) {
  Matrix m{p.rows, p.columns, std::vector<double>(p.v.size())};
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> g = gradient_of(step, i, numel);
    Matrix d = m;
    for (std::size_t k = 0; k < p.v.size(); ++k) {
      const double gk = kClip * g[offset + k];
      m.v[k] = s.momentum * m.v[k] + (1 - s.momentum) * gk;
      d.v[k] = s.nesterov ? s.momentum * m.v[k] + (1 - s.momentum) * gk : m.v[k];
    }
    const Matrix o = newton_schulz(d);
    const auto out = static_cast<double>(p.rows), in = static_cast<double>(p.columns);
    const double factor = s.scale == MuonScale::adamw      ? 0.2 * std::sqrt(std::max(out, in))
                          : s.scale == MuonScale::original ? std::sqrt(std::max(1.0, out / in))
                                                           : std::sqrt(out / in);
    for (std::size_t k = 0; k < p.v.size(); ++k)
      p.v[k] = p.v[k] * (1 - kRate * kDecay) - kRate * factor * o.v[k];
  }
  return {p, m};
}

void expect_close(const NamedValues& a, const NamedValues& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) {
    ASSERT_EQ(values.size(), b.at(name).size()) << name;
    for (std::size_t k = 0; k < values.size(); ++k)
      ASSERT_NEAR(values[k], b.at(name)[k], tolerance) << what << " " << name << "[" << k << "]";
  }
}

MuonSettings with(bool nesterov, MuonScale scale) {
  return {.momentum = 0.9, .nesterov = nesterov, .scale = scale, .others = {.weight_decay = kDecay}};
}

TEST(Muon, UpdatesTheMatricesOfHiddenLayers) {
  const ModelParams model = small_model();
  on_one_rank([&](Context&) {
    const ParamTree params = make_params(model, shard_specs(model.specs, 1).layouts, {.trains = true});
    const std::vector<bool> hidden = hidden_matrices(params);
    std::vector<std::string> others;
    for (std::size_t i = 0; i < hidden.size(); ++i)
      if (!hidden[i] && params.specs()[i].kind != ParamKind::bias) others.push_back(params.specs()[i].name);
    EXPECT_THAT(others, UnorderedElementsAre("embed", "norm.weight", "norm.bias", "lm_head.weight"));
  });
}

// An iteration multiplies an error by at most 3.4, five by 480: of an element of size 1, 480 x 6e-8 = 3e-5.
// The rate, 0.02, and the factor, at most 0.9, make it 5e-7 per update.
constexpr double kRounding = 2e-6;

TEST(Muon, EqualsTheFormula) {
  for (const bool nesterov : {true, false})
    for (const MuonScale scale : {MuonScale::adamw, MuonScale::original, MuonScale::spectral}) {
      const MuonSettings s = with(nesterov, scale);
      const NamedValues muon = updated_by(s, {1, 1}, StateSharding::none),
                        adamw = updated_by(s.others, {1, 1}, StateSharding::none);
      const ModelParams model = small_model();
      on_one_rank([&](Context&) {
        ParamTree params = make_params(model, shard_specs(model.specs, 1).layouts, {.trains = true});
        initialize(params, 1);
        const std::vector<bool> hidden = hidden_matrices(params);
        for (std::size_t i = 0; i < params.size(); ++i) {
          const std::string& name = params.specs()[i].name;
          const Shape& shape = params.specs()[i].shape;
          if (!hidden[i]) {
            EXPECT_EQ(muon.at(name), adamw.at(name)) << name;
            EXPECT_EQ(muon.at("exp_avg_sq/" + name), adamw.at("exp_avg_sq/" + name)) << name;
            continue;
          }
          EXPECT_EQ(muon.count("exp_avg/" + name), 0u);
          const std::vector<double> start = to_values(params.values()[i]);
          const i64 rows = shape[shape.size() - 2], columns = shape[shape.size() - 1], n = rows * columns;
          for (i64 first = 0; first < static_cast<i64>(start.size()); first += n) {  // experts
            const auto [p, m] =
                by_hand(s, {rows, columns, {start.begin() + first, start.begin() + first + n}}, i, first,
                        static_cast<i64>(start.size()));
            for (i64 k = 0; k < n; ++k) {
              ASSERT_NEAR(muon.at(name)[first + k], p.v[k], kRounding) << name << " " << first + k;
              ASSERT_NEAR(muon.at("momentum_buffer/" + name)[first + k], m.v[k], 1e-7) << name;
            }
          }
        }
      });
    }
}

// The parameters and the momentum after ten updates, from numbers that scripts/make_muon_fixture.py computes
// too.
NamedValues after_ten_of_muon(const MuonSettings& settings, const Mesh& mesh, StateSharding sharding) {
  ModelParams model;
  SpecBuilder b(model);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    b.linear(std::string("layers.0.attn.") + name, 8, 8, false, 1);
  b.linear("layers.0.mlp.up_proj", 20, 8, false, 1);
  b.linear("layers.0.mlp.down_proj", 8, 20, false, 1);
  NamedValues out;
  on_mesh(mesh, [&](Context& c) {
    ParamTree params = make_params(model, shard_specs(model.specs, mesh.mp()).layouts,
                                   {.sharding = sharding, .trains = true});
    const auto numbers = [](u64 seed, const Shape& shape, const Layout& layout) {
      const std::vector<double> v = redco::testing::Random(seed).values(numel(shape));
      const std::vector<float> v32(v.begin(), v.end());
      return from_values(shape, std::span<const float>(v32), layout);
    };
    for (std::size_t i = 0; i < params.size(); ++i) {
      Tensor& p = params.values()[i];
      c.run(&Kernels::copy, numbers(7000 + i, p.shape(), p.layout()), p);
    }
    const auto optimizer = make_optimizer(settings, params, sharding);
    for (u64 step = 0; step < 10; ++step) {
      std::vector<Tensor> grads;
      for (std::size_t i = 0; i < params.size(); ++i) {
        const Tensor& p = params.values()[i];
        grads.push_back(numbers(100 * step + i, p.shape(), state_layout(p, sharding)));
      }
      optimizer->update(params, grads, kRate, 1);
    }
    NamedValues mine = values_of(params, *optimizer);
    if (c.world().rank() == 0) out = std::move(mine);
  });
  return out;
}

// PyTorch computes the iterations in bf16, here the numbers are those of its code in float64. Rounding: of
// ten updates kRounding / 3 each. PyTorch's own bf16 moves an element by 1e-3 in these updates.
TEST(Muon, EqualsTorch) {
  std::ifstream in(std::string(REDCO_FIXTURES) + "/optim/muon.json");
  const auto fixture = nlohmann::json::parse(in);
  const std::map<std::string, MuonScale> scales = {
      {"adamw", MuonScale::adamw}, {"original", MuonScale::original}, {"spectral", MuonScale::spectral}};
  ASSERT_EQ(fixture.at("cases").size(), 4u);
  for (const auto& c : fixture["cases"]) {
    const MuonSettings settings = with(c.at("nesterov"), scales.at(c.at("scale")));
    NamedValues expected = c.at("parameters");
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
      for (const StateSharding sharding : kStages) {
        const std::string what =
            fmt::format("{} {} on {}x{} {}", c["scale"].get<std::string>(), c["nesterov"].get<bool>(),
                        mesh.dp(), mesh.mp(), name_of(sharding));
        const NamedValues got = after_ten_of_muon(settings, mesh, sharding);
        ASSERT_EQ(got.size(), 2 * expected.size()) << what;
        const auto compare = [&](const NamedValues& with, const std::string& prefix, double tolerance) {
          for (const auto& [name, values] : with) {
            const std::vector<double>& mine = got.at(prefix + name);
            ASSERT_EQ(mine.size(), values.size()) << what << " " << name;
            for (std::size_t k = 0; k < values.size(); ++k)
              ASSERT_NEAR(mine[k], values[k], tolerance) << what << " " << prefix << name << "[" << k << "]";
          }
        };
        compare(expected, "", 10 * kRounding / 3);
        if (c.contains("momentum_buffer")) compare(c["momentum_buffer"], "momentum_buffer/", 1e-6);
        if (c.contains("bf16")) compare(c["bf16"], "", 2e-3);
      }
  }
}

// PyTorch divides by the norm, or by 1e-7 if that is larger; it does not add 1e-7.
TEST(Muon, DividesTinyMatricesByTheirNorm) {
  on_one_rank([](Context&) {
    const std::vector<double> v = redco::testing::Random(1).values(24);
    std::vector<float> one(v.begin(), v.end()), tiny = one;
    for (float& x : tiny) x *= 1e-6F;
    const auto of = [](const std::vector<float>& x) {
      return to_values(orthogonalized(from_values({4, 6}, std::span<const float>(x)), 5));
    };
    const std::vector<double> a = of(one), b = of(tiny);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
  });
}

TEST(Muon, IsTheSameOnEveryMesh) {
  const MuonSettings s = with(true, MuonScale::adamw);
  const NamedValues one = updated_by(s, {1, 1}, StateSharding::none);
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{3, 1}, Mesh{1, 3}, Mesh{5, 1}})
    for (const StateSharding sharding : kStages)
      expect_close(one, updated_by(s, mesh, sharding), kRounding,
                   std::to_string(mesh.dp()) + "x" + std::to_string(mesh.mp()) + " " + name_of(sharding));
}

// With sharded state, replicas deal the matrices: none repeats what another computes.
TEST(Muon, ReplicasShareTheWork) {
  const auto flops = [&](const Mesh& mesh, StateSharding sharding) {
    ModelParams model;
    SpecBuilder b(model);
    for (int i = 0; i < 4; ++i) b.linear("layers." + std::to_string(i) + ".up_proj", 32, 32, false, 1);
    std::vector<i64> of_ranks(mesh.ranks());
    on_mesh(mesh, [&](Context& c) {
      ParamTree params =
          make_params(model, shard_specs(model.specs, 1).layouts, {.sharding = sharding, .trains = true});
      initialize(params, 1);
      std::vector<Tensor> grads;
      for (const Tensor& p : params.values())
        grads.push_back(zeros(p.shape(), DType::f32, state_layout(p, sharding)));
      const auto optimizer = make_optimizer(MuonSettings{}, params, sharding);
      const i64 before = c.flops();
      optimizer->update(params, grads, kRate, 1);
      of_ranks[c.world().rank()] = c.flops() - before;
    });
    return of_ranks;
  };
  const double all = static_cast<double>(flops({1, 1}, StateSharding::none)[0]);
  for (const i64 of_rank : flops({2, 1}, StateSharding::none)) EXPECT_EQ(static_cast<double>(of_rank), all);
  for (const i64 of_rank : flops({2, 1}, StateSharding::optimizer))
    EXPECT_NEAR(static_cast<double>(of_rank), all / 2, all / 50);
  for (const i64 of_rank : flops({4, 1}, StateSharding::parameters))
    EXPECT_NEAR(static_cast<double>(of_rank), all / 4, all / 50);
}

// Model shards communicate one sum for the norm, and one for the products of each iteration.
TEST(Muon, ModelShardsAddUpTheProducts) {
  for (const int dim : {0, 1}) {
    const Shape shape = dim == 0 ? Shape{32, 8} : Shape{8, 32};
    on_mesh({1, 2}, [&](Context& c) {
      const std::vector<double> v = redco::testing::Random(1).values(numel(shape));
      const std::vector<float> v32(v.begin(), v.end());
      const Tensor x =
          from_values(shape, std::span<const float>(v32), redco::testing::on_mp(Placement::sharded(dim)));
      c.keep_ledger();
      const Tensor o = orthogonalized(x, 5);
      EXPECT_EQ(o.layout(), x.layout());
      i64 sums = 0;
      for (const LedgerLine& l : c.ledger()->collectives()) {
        EXPECT_EQ(l.what, "all_reduce mp");
        sums += l.count;
      }
      EXPECT_EQ(sums, 6);
    });
  }
}

// 5 iterations move singular values to [0.68, 1.21] and keep singular vectors.
TEST(Muon, MakesSingularValuesNearOne) {
  on_one_rank([](Context&) {
    std::vector<double> diagonal(4 * 6, 0.0);
    const double values[] = {5, 3, -1, 0.1};
    for (int i = 0; i < 4; ++i) diagonal[i * 6 + i] = values[i];
    for (const Shape& shape : {Shape{4, 6}, Shape{6, 4}}) {
      std::vector<double> x = diagonal;
      if (shape[0] == 6) x = flipped({4, 6, diagonal}).v;
      const std::vector<float> x32(x.begin(), x.end());
      const std::vector<double> got =
          to_values(orthogonalized(from_values(shape, std::span<const float>(x32)), 5));
      for (i64 i = 0; i < shape[0]; ++i)
        for (i64 j = 0; j < shape[1]; ++j) {
          const double v = got[i * shape[1] + j];
          if (i != j) EXPECT_EQ(v, 0);
          if (i == j) {
            EXPECT_GT(v * values[i], 0);
            EXPECT_GT(std::abs(v), 0.68);
            EXPECT_LT(std::abs(v), 1.21);
          }
        }
    }
    for (const double v : to_values(orthogonalized(zeros({3, 5}, DType::f32, {}), 5))) EXPECT_EQ(v, 0);
  });
}

}  // namespace
}  // namespace redco
