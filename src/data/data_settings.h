// The `data:` section: what is trained on and how it is cut into examples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

struct DataSettings {
  std::vector<std::string> train, eval;
  std::string format = "text";
  std::optional<i64> max_length;
  bool packing = true;

  void visit(SettingsVisitor& v) {
    v.field("train", train, "training files, plain or .gz").path().one_or_more();
    v.field("eval", eval, "evaluation files; [] is no evaluation").path().one_or_more();
    v.field("format", format, "what the files hold: text is plain UTF-8 text").one_of({"text"});
    v.field("max_length", max_length, "tokens of an example; ~ is the model's maximum")
        .at_least(1)
        .at_most(1 << 24);
    v.field("packing", packing,
            "cut the text into windows of max_length tokens, across lines; text is always packed");
  }
};

}  // namespace redco
