// verify's report for people and for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "verify/verify.h"

namespace redco {

std::string to_text(const VerifyReport& r) {
  size_t width = 10;
  for (const VerifyLine& l : r.lines) width = std::max(width, l.tensor.size());
  std::string out = fmt::format("{} on {}\n{:<{}}  {:>11}  {:>11}\n", r.model, r.mesh, "tensor", width,
                                "difference", "tolerance");
  int checked = 0, over = 0, skipped = 0;
  for (const VerifyLine& l : r.lines) {
    if (!l.checked) {
      ++skipped;
      out += fmt::format("{:<{}}  not checked: {}\n", l.tensor, width, l.note);
      continue;
    }
    ++checked;
    over += !l.passed;
    out += fmt::format("{:<{}}  {:>11.3g}  {:>11.3g}{}\n", l.tensor, width, l.difference, l.tolerance,
                       l.passed ? "" : "  OVER");
  }
  out += fmt::format("{}: {} tensors checked, {} over tolerance, {} not checked\n",
                     r.passed ? "passed" : "FAILED", checked, over, skipped);
  return out;
}

std::string to_json(const VerifyReport& r) {
  nlohmann::ordered_json j = {{"model", r.model},
                              {"mesh", r.mesh},
                              {"passed", r.passed},
                              {"tensors", nlohmann::ordered_json::array()}};
  for (const VerifyLine& l : r.lines) {
    nlohmann::ordered_json t = {{"name", l.tensor}, {"checked", l.checked}};
    if (l.checked) {
      // JSON has no infinity: a difference that isn't finite is null.
      t["difference"] =
          std::isfinite(l.difference) ? nlohmann::ordered_json(l.difference) : nlohmann::ordered_json();
      t["tolerance"] = l.tolerance;
      t["passed"] = l.passed;
    }
    if (!l.note.empty()) t["note"] = l.note;
    j["tensors"].push_back(std::move(t));
  }
  return j.dump(2) + "\n";
}

}  // namespace redco
