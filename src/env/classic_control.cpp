#include "env/classic_control.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace redco {

namespace {

constexpr double kPi = std::numbers::pi;

double between(double low, double high, double u) { return low + (high - low) * u; }

// The angle wrapped to [-pi, pi].
double wrapped(double x) {
  // Keeps the loops short for any state of a trace.
  if (!(std::fabs(x) < 100)) x = std::remainder(x, 2 * kPi);
  while (x > kPi) x -= 2 * kPi;
  while (x < -kPi) x += 2 * kPi;
  return x;
}

int discrete(const Environment& e, float action) {
  const int a = static_cast<int>(action);
  if (static_cast<float>(a) != action || a < 0 || a >= e.n_actions())
    throw UsageError("[env] {} has the actions 0 to {}, but the action is {}", e.name(), e.n_actions() - 1,
                     action);
  return a;
}

// CartPole (Barto, Sutton and Anderson 1983). State and observation: x, x', theta, theta'.
class CartPole : public Environment {
 public:
  CartPole() {
    name_ = "CartPole-v1";
    state_size_ = observation_size_ = 4;
    n_actions_ = 2;
    time_limit_ = 500;
  }
  void reset(std::span<const double> u, std::span<double> s) const override {
    for (int i = 0; i < 4; ++i) s[i] = between(-0.05, 0.05, u[i]);
  }
  void observe(std::span<const double> s, std::span<float> o) const override {
    for (int i = 0; i < 4; ++i) o[i] = static_cast<float>(s[i]);
  }
  EnvOutcome step(std::span<double> s, std::span<const float> action) const override {
    constexpr double kGravity = 9.8, kPole = 0.1, kTotal = 1.1, kLength = 0.5, kPoleLength = 0.05,
                     kForce = 10, kTau = 0.02;
    const double force = discrete(*this, action[0]) == 1 ? kForce : -kForce;
    const double cos = std::cos(s[2]), sin = std::sin(s[2]);
    const double temp = (force + kPoleLength * s[3] * s[3] * sin) / kTotal;
    const double theta_acc =
        (kGravity * sin - cos * temp) / (kLength * (4.0 / 3.0 - kPole * cos * cos / kTotal));
    const double x_acc = temp - kPoleLength * theta_acc * cos / kTotal;
    s[0] += kTau * s[1];
    s[1] += kTau * x_acc;
    s[2] += kTau * s[3];
    s[3] += kTau * theta_acc;
    return {1, std::fabs(s[0]) > 2.4 || std::fabs(s[2]) > 12 * 2 * kPi / 360};
  }
};

// Acrobot (Sutton 1996, with the equations of Sutton and Barto's book). State: two angles and their
// velocities.
class Acrobot : public Environment {
 public:
  Acrobot() {
    name_ = "Acrobot-v1";
    state_size_ = 4;
    observation_size_ = 6;
    n_actions_ = 3;
    time_limit_ = 500;
  }
  void reset(std::span<const double> u, std::span<double> s) const override {
    for (int i = 0; i < 4; ++i) s[i] = between(-0.1, 0.1, u[i]);
  }
  void observe(std::span<const double> s, std::span<float> o) const override {
    const double v[] = {std::cos(s[0]), std::sin(s[0]), std::cos(s[1]), std::sin(s[1]), s[2], s[3]};
    for (int i = 0; i < 6; ++i) o[i] = static_cast<float>(v[i]);
  }
  EnvOutcome step(std::span<double> s, std::span<const float> action) const override {
    const double torque = discrete(*this, action[0]) - 1;
    constexpr double kStep = 0.2;
    // One fourth-order Runge-Kutta step.
    const State y0 = {s[0], s[1], s[2], s[3]};
    const State k1 = derivative(y0, torque), k2 = derivative(moved(y0, k1, kStep / 2), torque),
                k3 = derivative(moved(y0, k2, kStep / 2), torque),
                k4 = derivative(moved(y0, k3, kStep), torque);
    for (int i = 0; i < 4; ++i) s[i] = y0[i] + kStep / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    s[0] = wrapped(s[0]);
    s[1] = wrapped(s[1]);
    s[2] = std::clamp(s[2], -4 * kPi, 4 * kPi);
    s[3] = std::clamp(s[3], -9 * kPi, 9 * kPi);
    const bool up = -std::cos(s[0]) - std::cos(s[1] + s[0]) > 1;
    return {up ? 0.0 : -1.0, up};
  }

 private:
  using State = std::array<double, 4>;
  static State moved(const State& y, const State& k, double h) {
    return {y[0] + h * k[0], y[1] + h * k[1], y[2] + h * k[2], y[3] + h * k[3]};
  }
  // Masses, lengths and moments of inertia are 1; centres of mass are at one half of the lengths.
  static State derivative(const State& s, double torque) {
    constexpr double kGravity = 9.8;
    const double cos2 = std::cos(s[1]), sin2 = std::sin(s[1]);
    const double d1 = 0.25 + (1 + 0.25 + cos2) + 2, d2 = 0.25 + 0.5 * cos2 + 1;
    const double phi2 = 0.5 * kGravity * std::cos(s[0] + s[1] - kPi / 2);
    const double phi1 =
        -0.5 * s[3] * s[3] * sin2 - s[3] * s[2] * sin2 + 1.5 * kGravity * std::cos(s[0] - kPi / 2) + phi2;
    const double a2 = (torque + d2 / d1 * phi1 - 0.5 * s[2] * s[2] * sin2 - phi2) / (0.25 + 1 - d2 * d2 / d1);
    return {s[2], s[3], -(d2 * a2 + phi1) / d1, a2};
  }
};

// Mountain car (Moore 1990) with a continuous force. State and observation: position, velocity.
class MountainCarContinuous : public Environment {
 public:
  MountainCarContinuous() {
    name_ = "MountainCarContinuous-v0";
    state_size_ = observation_size_ = 2;
    action_low_ = -1;
    action_high_ = 1;
    time_limit_ = 999;
  }
  void reset(std::span<const double> u, std::span<double> s) const override {
    s[0] = between(-0.6, -0.4, u[0]);
    s[1] = 0;
  }
  void observe(std::span<const double> s, std::span<float> o) const override {
    o[0] = static_cast<float>(s[0]);
    o[1] = static_cast<float>(s[1]);
  }
  EnvOutcome step(std::span<double> s, std::span<const float> action) const override {
    const double force = std::clamp<double>(action[0], -1, 1);
    s[1] = std::clamp(s[1] + force * 0.0015 - 0.0025 * std::cos(3 * s[0]), -0.07, 0.07);
    s[0] = std::clamp(s[0] + s[1], -1.2, 0.6);
    if (s[0] == -1.2 && s[1] < 0) s[1] = 0;
    const bool there = s[0] >= 0.45 && s[1] >= 0;
    // The cost uses the action before clipping.
    return {(there ? 100.0 : 0.0) - 0.1 * static_cast<double>(action[0]) * action[0], there};
  }
};

// Pendulum. State: angle and velocity; observation: cosine and sine of the angle, velocity.
class Pendulum : public Environment {
 public:
  Pendulum() {
    name_ = "Pendulum-v1";
    state_size_ = 2;
    observation_size_ = 3;
    action_low_ = -2;
    action_high_ = 2;
    time_limit_ = 200;
  }
  void reset(std::span<const double> u, std::span<double> s) const override {
    s[0] = between(-kPi, kPi, u[0]);
    s[1] = between(-1, 1, u[1]);
  }
  void observe(std::span<const double> s, std::span<float> o) const override {
    o[0] = static_cast<float>(std::cos(s[0]));
    o[1] = static_cast<float>(std::sin(s[0]));
    o[2] = static_cast<float>(s[1]);
  }
  EnvOutcome step(std::span<double> s, std::span<const float> action) const override {
    const double u = std::clamp<double>(action[0], -2, 2);
    const double angle = std::fmod(std::fmod(s[0] + kPi, 2 * kPi) + 2 * kPi, 2 * kPi) - kPi;
    const double cost = angle * angle + 0.1 * s[1] * s[1] + 0.001 * u * u;
    s[1] = std::clamp(s[1] + (15 * std::sin(s[0]) + 3 * u) * 0.05, -8.0, 8.0);
    s[0] += s[1] * 0.05;
    return {-cost, false};
  }
};

template <class E>
std::unique_ptr<Environment> make() {
  return std::make_unique<E>();
}
}  // namespace

std::span<const ClassicEnvironment> classic_control() {
  static constexpr ClassicEnvironment kAll[] = {{"CartPole-v1", make<CartPole>},
                                                {"Acrobot-v1", make<Acrobot>},
                                                {"MountainCarContinuous-v0", make<MountainCarContinuous>},
                                                {"Pendulum-v1", make<Pendulum>}};
  return kAll;
}

}  // namespace redco
