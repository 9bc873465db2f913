#include "data/builtin/made_sounds.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <random>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr std::string_view kMade = "sounded:digits/";
// Hz of the rows and columns of a telephone's keys; the last row has the key 0 in its middle.
constexpr double kRows[] = {697, 770, 852, 941}, kColumns[] = {1209, 1336, 1477};

// Random numbers that depend on the recording only; the C++ standard fixes the generator's results.
class SoundDraws {
 public:
  explicit SoundDraws(i64 k) : random_(static_cast<u64>(k) + 71) {}
  i64 below(i64 n) { return static_cast<i64>(random_() % static_cast<u64>(n)); }
  double within(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 random_;
};

std::vector<i64> drawn_digits(SoundDraws& draws) {
  std::vector<i64> out(static_cast<size_t>(1 + draws.below(4)));
  for (i64& digit : out) digit = draws.below(10);
  return out;
}

}  // namespace

bool is_made_sound(const std::string& name) { return name.starts_with("sounded:"); }

std::string sounded_digits(i64 k) {
  SoundDraws draws(k);
  std::string out;
  for (const i64 digit : drawn_digits(draws)) out += (out.empty() ? "" : " ") + std::to_string(digit);
  return out;
}

std::vector<float> make_sound(const std::string& name, i64 rate, const std::string& where) {
  i64 k = -1;
  const std::string_view number = std::string_view(name).substr(std::min(name.size(), kMade.size()));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), k);
  if (!name.starts_with(kMade) || error != std::errc() || end != number.data() + number.size() || k < 0)
    throw ContentsError("{} {}: no such recording; expected {}K with a number K", where, excerpt(name),
                        kMade);
  SoundDraws draws(k);
  const std::vector<i64> digits = drawn_digits(draws);
  std::vector<double> samples;
  const auto seconds = [&](double s) { return static_cast<size_t>(s * static_cast<double>(rate)); };
  samples.resize(seconds(draws.within(0.02, 0.12)));
  for (const i64 digit : digits) {
    const i64 key = digit == 0 ? 10 : digit - 1;
    const double low = kRows[key / 3], high = kColumns[key % 3], loud = draws.within(0.1, 0.4);
    const size_t n = seconds(draws.within(0.09, 0.13));
    for (size_t i = 0; i < n; ++i) {
      const double t = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(rate);
      samples.push_back(loud * (std::sin(low * t) + std::sin(high * t)));
    }
    samples.resize(samples.size() + seconds(draws.within(0.05, 0.08)));
  }
  std::vector<float> out;
  for (const double x : samples) out.push_back(static_cast<float>(x + draws.within(-0.01, 0.01)));
  return out;
}

}  // namespace redco
