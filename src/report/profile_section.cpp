#include "report/profile_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "report/html.h"

namespace redco {

namespace {

constexpr std::size_t kMostOps = 15, kMostPhases = 30, kMostKernels = 15, kMostCollectives = 30;
constexpr std::size_t kLongestName = 80;

class ProfileView {
 public:
  explicit ProfileView(const ProfileData& profile) : p_(profile), n_(static_cast<double>(p_.n_steps)) {}

  std::string text() const { return facts() + phases() + ops() + kernels() + collectives(); }

 private:
  std::string ms(double seconds) const { return human_number(1e3 * seconds / n_); }

  // Of the whole time, "32.5%"; "?" where it is no share.
  std::string share(double seconds) const {
    const double x = seconds / p_.seconds;
    return x >= 0 && x < 10 ? fmt::format("{:.1f}%", 100 * x) : "?";
  }

  static std::string name(const std::string& text) { return excerpt(text, kLongestName); }

  // The line above a list of which the first `shown` are shown.
  static std::string caption(const std::string& what, std::size_t shown, std::size_t all) {
    return "<p class=\"sub\">" + what +
           (shown < all ? fmt::format("; the longest {} of {}", shown, all) : "") + "</p>\n";
  }

  std::string facts() const {
    const std::string steps =
        p_.n_steps == 1 ? fmt::format("Step {}", p_.first_step)
                        : fmt::format("Steps {} to {}", p_.first_step, p_.first_step + p_.n_steps - 1);
    return fmt::format(
        "<p class=\"sub\">{} on {}: {} ms per step{}, memory peak of tensors {}. The traces "
        "<code>profile/rank-N.json</code> open in ui.perfetto.dev.</p>\n",
        steps, counted(p_.n_ranks, "rank"), ms(p_.seconds), p_.n_ranks > 1 ? " (mean over the ranks)" : "",
        escape(bytes_text(p_.memory_peak)));
  }

  std::string phases() const {
    const std::size_t n = std::min(p_.phases.size(), kMostPhases);
    if (n == 0) return "";
    const bool longest = p_.n_ranks > 1;  // else it is the same
    std::string s =
        (n < p_.phases.size() ? caption("phases", n, p_.phases.size()) : "") +
        "<div class=\"scroll\"><table class=\"phases\">\n<tr><th>phase</th><th class=\"n\">ms per "
        "step</th>" +
        (longest ? "<th class=\"n\">slowest rank</th>" : "") + "<th class=\"n\">share</th></tr>\n";
    for (std::size_t i = 0; i < n; ++i) {
      const ProfileData::Phase& phase = p_.phases[i];
      const double percent = p_.seconds > 0 ? std::min(100 * phase.seconds / p_.seconds, 100.0) : 0;
      s += fmt::format(
          "<tr><td><div><span>{}</span><div class=\"bar k0\"><i style=\"width:{:.1f}%\"></i></div></div></td>"
          "<td class=\"n\">{}</td>",
          escape(name(phase.name)), percent, ms(phase.seconds));
      if (longest) s += "<td class=\"n\">" + ms(phase.longest) + "</td>";
      s += "<td class=\"n\">" + share(phase.seconds) + "</td></tr>\n";
    }
    return s + "</table></div>\n";
  }

  std::string ops() const {
    const std::size_t n = std::min(p_.ops.size(), kMostOps);
    if (n == 0) return "";
    std::vector<Row> rows;
    for (std::size_t i = 0; i < n; ++i) {
      const ProfileData::Op& op = p_.ops[i];
      const double gflops = op.flops / op.seconds / 1e9;
      rows.push_back({name(op.name), name(op.phase), name(op.scope), human_count(op.calls / n_),
                      ms(op.seconds), share(op.seconds),
                      op.flops > 0 && std::isfinite(gflops) ? human_number(gflops) : ""});
    }
    return caption(std::string("ops, per rank") + (p_.collectives.empty() ? "" : " and without collectives"),
                   n, p_.ops.size()) +
           table({"op", "phase", "part of the model", "calls per step", "ms per step", "share", "GFLOP/s"},
                 rows, "tttnnnn");
  }

  std::string kernels() const {
    const std::size_t n = std::min(p_.kernels.size(), kMostKernels);
    if (n == 0) return "";
    std::vector<Row> rows;
    for (std::size_t i = 0; i < n; ++i) {
      const ProfileData::Kernel& k = p_.kernels[i];
      rows.push_back({name(k.name), human_count(k.calls / n_), ms(k.seconds), share(k.seconds)});
    }
    return caption("kernels of these ops, per rank", n, p_.kernels.size()) +
           table({"kernel", "calls per step", "ms per step", "share"}, rows, "tnnn");
  }

  std::string collectives() const {
    const std::size_t n = std::min(p_.collectives.size(), kMostCollectives);
    if (n == 0) return "";
    std::vector<Row> rows;
    for (std::size_t i = 0; i < n; ++i) {
      const ProfileData::Collective& c = p_.collectives[i];
      rows.push_back({name(c.name), name(c.axis), name(c.phase), human_count(c.calls / n_),
                      human_number(c.bytes / 1e6 / n_), ms(c.transfer), ms(c.seconds), ms(c.longest)});
    }
    return caption("collectives, per rank and step; they move also while ops compute", n,
                   p_.collectives.size()) +
           table({"collective", "axis", "phase", "calls per step", "MB per step", "ms moving", "ms waiting",
                  "slowest rank"},
                 rows, "tttnnnnn");
  }

  const ProfileData& p_;
  const double n_;  // steps
};

}  // namespace

std::string profile_section(const ProfileData& profile) { return ProfileView(profile).text(); }

}  // namespace redco
