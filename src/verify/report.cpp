// The report of verify as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "verify/verify.h"

namespace redco {

i64 VerifyReport::not_checked() const {
  return std::count_if(lines.begin(), lines.end(), [](const VerifyLine& l) { return !l.checked; });
}

void conclude(VerifyReport& r, bool strict) {
  std::sort(r.lines.begin(), r.lines.end(),
            [](const VerifyLine& a, const VerifyLine& b) { return a.tensor < b.tensor; });
  const auto over = [](const VerifyLine& l) { return l.checked && !l.passed; };
  const i64 skipped = r.not_checked();
  r.strict = strict;
  r.passed = skipped < std::ssize(r.lines) && std::none_of(r.lines.begin(), r.lines.end(), over) &&
             !(strict && skipped > 0);
}

std::string to_text(const VerifyReport& r) {
  size_t width = 10;
  for (const VerifyLine& l : r.lines) width = std::max(width, l.tensor.size());
  std::string out = fmt::format("{} on {}\n{:<{}}  {:>11}  {:>11}\n", r.model, r.mesh, "tensor", width,
                                "difference", "tolerance");
  int checked = 0, over = 0;
  for (const VerifyLine& l : r.lines) {
    if (!l.checked) {
      out += fmt::format("{:<{}}  not checked: {}\n", l.tensor, width, l.note);
      continue;
    }
    ++checked;
    over += !l.passed;
    out += fmt::format("{:<{}}  {:>11.3g}  {:>11.3g}{}", l.tensor, width, l.difference, l.tolerance,
                       l.passed ? "" : "  OVER");
    if (l.left_out > 0)
      out += fmt::format("  {} of {} positions left out: {} is 0", l.left_out, l.positions, l.mask);
    out += "\n";
  }
  if (r.undetermined > 0)
    out +=
        fmt::format("first AdamW step: {} elements take the file's gradient, which is below its tolerance\n",
                    r.undetermined);
  out += fmt::format("{}: {} tensors checked, {} over tolerance, {} not checked{}\n",
                     r.passed ? "passed" : "FAILED", checked, over, r.not_checked(),
                     r.strict && r.not_checked() > 0 ? ", which --strict does not allow" : "");
  return out;
}

std::string to_json(const VerifyReport& r) {
  nlohmann::ordered_json j = {{"model", r.model},
                              {"mesh", r.mesh},
                              {"passed", r.passed},
                              {"strict", r.strict},
                              {"not_checked", r.not_checked()},
                              {"undetermined_first_steps", r.undetermined},
                              {"tensors", nlohmann::ordered_json::array()}};
  for (const VerifyLine& l : r.lines) {
    nlohmann::ordered_json t = {{"name", l.tensor}, {"checked", l.checked}};
    if (l.checked) {
      // JSON has no infinity: a difference that is not finite becomes null.
      t["difference"] =
          std::isfinite(l.difference) ? nlohmann::ordered_json(l.difference) : nlohmann::ordered_json();
      t["tolerance"] = l.tolerance;
      t["passed"] = l.passed;
      if (!l.mask.empty()) {
        t["mask"] = l.mask;
        t["positions"] = l.positions;
        t["positions_left_out"] = l.left_out;
      }
    }
    if (!l.note.empty()) t["note"] = l.note;
    j["tensors"].push_back(std::move(t));
  }
  return j.dump(2) + "\n";
}

}  // namespace redco
