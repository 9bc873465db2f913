// What algorithms with their own data need: environments, draws and orders that have keys, and the cost of
// privacy.
#include "data/images/image_preprocess.h"
#include "data/index/epoch_order.h"
#include "env/env_rows.h"
#include "env/make_environment.h"
#include "metrics/privacy.h"
#include "ops/create.h"
#include "pipelines/read_images.h"
#include "python/bindings.h"
#include "tensor/transfer.h"

namespace redco::python {

namespace {

std::vector<float> floats(const py::object& x) { return elements<float>(glue("floats")(x)); }
py::object bools(const std::vector<bool>& x) {
  const std::vector<char> bytes(x.begin(), x.end());
  return array_of_bytes(bytes.data(), bytes.size(), {static_cast<i64>(bytes.size())}, "bool");
}

// Copies of an environment, and its sizes.
struct Environments {
  Environments(const std::string& name, i64 n) : env(make_environment(name)), rows(env, n) {}
  py::object rows_of(const std::vector<float>& x, i64 width) const {
    return array_of(x, {rows.size(), width});
  }

  std::shared_ptr<const Environment> env;
  EnvRows rows;
  bool begun = false;
  std::vector<float> resets;  // uniform draws of the next steps
  std::size_t used = 0;       // of them
};

// Draws of the key (seed, step, site).
std::vector<float> draws(Tensor (*draw)(const Shape&, u64, const Layout&), const Shape& shape,
                         const std::string& site, i64 seed, i64 step) {
  Context& c = Context::current();
  const Restore<RandomState> random(c.random,
                                    {.seed = static_cast<u64>(seed), .step = step, .row_offset = 0});
  const Tensor t = draw(shape, c.key(site), {});
  return t.is_meta() ? std::vector<float>(static_cast<std::size_t>(numel(shape))) : host_copy<float>(t);
}

void prepare(Environments& e, i64 steps, i64 seed, i64 epoch, const std::string& site) {
  const i64 n = e.rows.size(), states = e.env->state_size();
  if (!std::exchange(e.begun, true)) e.rows.begin(draws(random_uniform, {n, states}, "rl/begin", seed, 0));
  e.resets = draws(random_uniform, {steps, n, states}, site, seed, epoch);
  e.used = 0;
}

EnvRows::Outcome step(Environments& e, const std::vector<float>& actions) {
  const std::size_t n = static_cast<std::size_t>(e.rows.size() * e.env->state_size());
  if (static_cast<i64>(actions.size()) != e.rows.size() * e.env->action_size())
    throw UsageError("{} copies of {} got {} numbers as actions, expected [{}, {}]", e.rows.size(),
                     e.env->name(), actions.size(), e.rows.size(), e.env->action_size());
  if (e.used + n > e.resets.size())
    throw UsageError("{}: step() {} of {}; call prepare() with the number of steps", e.env->name(),
                     e.used / n + 1, e.resets.size() / n);
  const std::span<const float> reset(e.resets.data() + std::exchange(e.used, e.used + n), n);
  return e.rows.step(actions, reset);
}

// As an array, the same on every rank and mesh.
py::object drawn(Tensor (*draw)(const Shape&, u64, const Layout&), const std::vector<i64>& shape,
                 const std::string& site, i64 seed, i64 step) {
  std::vector<float> out;
  {
    const py::gil_scoped_release unlocked;
    out = draws(draw, to_shape(shape), site, seed, step);
  }
  return array_of(out, shape);
}

}  // namespace

void bind_environments(py::module_& m) {
  py::class_<Environments>(m, "Environments", "n copies of an environment, CartPole-v1 or another of rl.env.")
      .def(py::init<const std::string&, i64>(), "name"_a, "n"_a)
      .def_property_readonly("state_size", [](const Environments& e) { return e.env->state_size(); })
      .def_property_readonly("observation_size",
                             [](const Environments& e) { return e.env->observation_size(); })
      .def_property_readonly("action_size", [](const Environments& e) { return e.env->action_size(); })
      .def_property_readonly(
          "n_actions", [](const Environments& e) { return e.env->n_actions(); },
          "Discrete actions are 0 to n_actions - 1; 0: actions are numbers.")
      .def_property_readonly("action_low", [](const Environments& e) { return e.env->action_low(); })
      .def_property_readonly("action_high", [](const Environments& e) { return e.env->action_high(); })
      .def(
          "prepare", &prepare, "steps"_a, "seed"_a, "epoch"_a, "site"_a = "rl/reset", Free(),
          "Draws the initial states of the episodes that begin in the next steps, by the key of (seed, epoch, site). "
          "The first call starts an episode in every copy.")
      .def(
          "observations",
          [](const Environments& e) { return e.rows_of(e.rows.observations(), e.env->observation_size()); },
          "[n, observation_size]")
      .def(
          "step",
          [](Environments& e, const py::object& actions) {
            const EnvRows::Outcome o = step(e, floats(actions));
            return py::make_tuple(array_of(o.rewards, {e.rows.size()}),
                                  e.rows_of(o.next_observations, e.env->observation_size()),
                                  bools(o.terminated), bools(o.ended));
          },
          "actions"_a,
          "(rewards [n], next observations [n, observation_size], terminated [n], ended [n]); where an episode has "
          "ended, the next one begins.")
      .def(
          "notes", [](const Environments& e) { return e.rows.notes(); },
          "episode_return and episode_length, means over the last 100 episodes, and env_steps.")
      .def("state", [](const Environments& e) { return e.rows.state(); })
      .def(
          "restore",
          [](Environments& e, const std::string& json) {
            e.rows.restore(json);
            e.begun = true;
          },
          "json"_a);

  m.def(
      "uniforms",
      [](const std::vector<i64>& shape, const std::string& site, i64 seed, i64 step) {
        return drawn(random_uniform, shape, site, seed, step);
      },
      "shape"_a, "site"_a, "seed"_a, "step"_a = 0,
      "An array uniform in [0, 1), by the key of (seed, step, site): the same on all ranks.");
  m.def(
      "normals",
      [](const std::vector<i64>& shape, const std::string& site, i64 seed, i64 step) {
        return drawn(random_normal, shape, site, seed, step);
      },
      "shape"_a, "site"_a, "seed"_a, "step"_a = 0,
      "An array of standard normal numbers, by the key of uniforms().");
  m.def(
      "permutation",
      [](i64 n, i64 seed, i64 k) {
        const std::vector<i64> order = EpochOrder(n, static_cast<u64>(seed), static_cast<u64>(k)).range(0, n);
        return array_of(std::vector<i32>(order.begin(), order.end()), {n});
      },
      "n"_a, "seed"_a, "k"_a = 0,
      "The k-th random order of 0 to n - 1 with this seed: the same on all ranks.");

  m.def("count_right", &count_right, "logits"_a, "labels"_a, Free(),
        "The number of labels whose logit is the largest of its row. Labels below 0 do not count.");
  m.def(
      "png_data_uri",
      [](const py::object& pixels) {
        const Shape s = shape_of(pixels);
        const std::vector<float> values = floats(pixels);
        if (s.size() != 3)
          throw UsageError("an image has {} dims; expected [channels, height, width]", s.size());
        return png_data_uri(ImagePreprocess("", s[0], s[1], s[2], true)
                                .to_image(std::vector<double>(values.begin(), values.end())));
      },
      "pixels"_a,
      "An array [channels, height, width] from -1 to 1 as a PNG file in a text: an answer's image.");
  m.def(
      "privacy_epsilon",
      [](double rate, double noise, i64 steps, double delta) {
        return privacy_epsilon({rate, noise}, steps, delta);
      },
      "sample_rate"_a, "noise_multiplier"_a, "steps"_a, "delta"_a,
      "The epsilon for which so many steps of DP-SGD are (epsilon, delta) private.");
  m.def("noise_for_epsilon", &noise_for_epsilon, "sample_rate"_a, "steps"_a, "epsilon"_a, "delta"_a,
        "The lowest noise multiplier for which the steps cost at most epsilon.");
}

}  // namespace redco::python
