#include "pipelines/text_groups.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/create.h"
#include "ops/shape.h"
#include "pipeline/longest_first.h"
#include "pipelines/answer_values.h"

namespace redco {

namespace {

const Tokenizer& group_tokenizer(const Model& model, const Tokenizer* tokenizer) {
  if (!tokenizer)
    throw UsageError(
        "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
        model.family());
  return *tokenizer;
}

class GroupDataset : public Dataset {
 public:
  explicit GroupDataset(std::shared_ptr<const Dataset> examples) : examples_(std::move(examples)) {
    for (i64 i = 0; i < examples_->size(); ++i) {
      sizes_.push_back(static_cast<i32>(group_size(examples_->get(i))));
      texts_ += sizes_.back();
    }
  }
  i64 size() const override { return examples_->size(); }
  i64 length(i64 i) const override { return examples_->length(i); }
  i64 target_length(i64 i) const override { return sizes_[static_cast<size_t>(i)]; }
  Example get(i64 i) const override { return examples_->get(i); }
  std::string fingerprint() const override { return examples_->fingerprint(); }
  Reading reading() const override { return examples_->reading(); }
  std::string describe() const override {
    const std::string more = examples_->describe();
    return fmt::format("{} examples with {} texts{}{}", size(), texts_, more.empty() ? "" : "; ", more);
  }

 private:
  std::shared_ptr<const Dataset> examples_;
  std::vector<i32> sizes_;
  i64 texts_ = 0;
};

}  // namespace

i64 group_size(const Example& e) {
  i64 n = 0;
  while (e.ids.count(std::to_string(n))) ++n;
  return n;
}

std::shared_ptr<const Dataset> group_dataset(std::shared_ptr<const Dataset> examples) {
  return std::make_shared<GroupDataset>(std::move(examples));
}

TextGroups::TextGroups(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings)
    : model_(model), tokenizer_(group_tokenizer(model, tokenizer)) {
  max_length_ = std::min(settings.data.max_length.value_or(model.max_length()), model.length_limit());
  for (const ParamSpec& p : model.params().specs)
    types_ = types_ || (p.name.ends_with("token_type_embeddings.weight") && p.shape[0] > 1);
}

Example TextGroups::example(const TextGroup& g) const {
  Example e;
  for (size_t k = 0; k < g.texts.size(); ++k) {
    Encoding tokens = tokenizer_.encode_pair(g.first, g.texts[k], max_length_);
    if (tokens.ids.empty()) throw ContentsError("text {} has no tokens after tokenization", k + 1);
    e.ids[std::to_string(k)] = std::move(tokens.ids);
    if (types_) e.ids[std::to_string(k) + ".types"] = std::move(tokens.type_ids);
  }
  e.values["labels"] = g.labels;
  return e;
}

void TextGroups::add(Batch& b, std::span<const Example> rows, const std::string& name,
                     const std::string& prefix) const {
  std::vector<Example> out(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto ids = rows[r].ids.find(name);
    const bool there = ids != rows[r].ids.end();
    // An example without this text has a row of one token, whose output does not count.
    out[r].ids["ids"] = there ? ids->second : std::vector<i32>{0};
    out[r].ids["mask"].assign(out[r].ids["ids"].size(), 1);
    out[r].ids["types"] = there && types_ ? rows[r].ids.at(name + ".types") : std::vector<i32>{0};
  }
  b.fields[prefix + "ids"] = id_rows(out, b.shape, "ids", std::max(0, model_.pad_token_id()));
  b.fields[prefix + "mask"] = id_rows(out, b.shape, "mask", 0);
  if (types_) b.fields[prefix + "types"] = id_rows(out, b.shape, "types", 0);
}

void TextGroups::collate(std::span<const Example> mine, Batch& b) const {
  const i64 K = std::max<i64>(1, b.shape.target_length);
  std::vector<Example> groups(mine.size());
  double texts = 0;
  for (size_t r = 0; r < mine.size(); ++r) {
    const i64 n = group_size(mine[r]);
    const auto labels = mine[r].values.find("labels");
    for (i64 k = 0; k < K; ++k) {
      groups[r].ids["there"].push_back(k < n ? 1 : 0);
      const bool has = labels != mine[r].values.end() && k < static_cast<i64>(labels->second.size());
      groups[r].values["labels"].push_back(has ? labels->second[static_cast<size_t>(k)] : 0);
    }
    texts += static_cast<double>(n);
  }
  for (i64 k = 0; k < K; ++k) add(b, mine, std::to_string(k), fmt::format("{}.", k));
  b.fields["there"] = fixed_id_rows(groups, b.shape, "there", {K});
  b.fields["labels"] = value_rows(groups, b.shape, "labels", {K});
  b.weights["texts"] = texts;
}

Tensor TextGroups::outputs(const ParamTree& params, const Batch& b, const std::string& prefix,
                           const StepContext& ctx) const {
  EncoderInputs in{.input_ids = b[prefix + "ids"], .key_mask = b[prefix + "mask"]};
  if (types_) in.token_type_ids = b[prefix + "types"];
  return model_.apply_encoder(params, in, ctx.apply);  // [B, 1]
}

Tensor TextGroups::logits(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
  std::vector<Tensor> out;
  for (i64 k = 0; k < std::max<i64>(1, b.shape.target_length); ++k) {
    const auto keys = ctx.scope("text", k);  // each text has its own dropout
    out.push_back(outputs(params, b, fmt::format("{}.", k), ctx));
  }
  return out.size() == 1 ? out[0] : concat(out, 1);
}
Tensor TextGroups::there(const Batch& b) const { return b["there"]; }
Tensor TextGroups::labels(const Batch& b) const { return b["labels"]; }

std::vector<std::vector<double>> TextGroups::scores(const ParamTree& params,
                                                    std::span<const Example> examples,
                                                    const StepContext& ctx) const {
  std::vector<std::vector<double>> out;
  std::vector<std::pair<size_t, std::string>> texts;
  for (size_t i = 0; i < examples.size(); ++i) {
    const i64 n = group_size(examples[i]);
    out.emplace_back(static_cast<size_t>(n), 0);
    for (i64 k = 0; k < n; ++k) texts.emplace_back(i, std::to_string(k));
  }
  const auto length = [&](i64 t) {
    const auto& [i, name] = texts[static_cast<size_t>(t)];
    return static_cast<i64>(examples[i].ids.at(name).size());
  };
  const std::vector<i64> order = longest_first(static_cast<i64>(texts.size()), length);
  constexpr i64 kFewest = 8;
  const i64 at_once = std::max(kFewest, static_cast<i64>(examples.size()));
  for (i64 first = 0; first < static_cast<i64>(order.size()); first += at_once) {
    const i64 n = std::min(at_once, static_cast<i64>(order.size()) - first);
    std::vector<Example> rows(static_cast<size_t>(n));
    Batch b;
    b.shape = {.rows = n, .mine = {0, n}, .length = 1};
    for (i64 r = 0; r < n; ++r) {
      const auto& [i, name] = texts[static_cast<size_t>(order[static_cast<size_t>(first + r)])];
      rows[static_cast<size_t>(r)].ids["0"] = examples[i].ids.at(name);
      if (types_) rows[static_cast<size_t>(r)].ids["0.types"] = examples[i].ids.at(name + ".types");
      b.shape.length = std::max(b.shape.length, static_cast<i64>(examples[i].ids.at(name).size()));
    }
    add(b, rows, "0", "");
    const std::vector<double> values = answer_values(outputs(params, b, "", ctx));
    for (i64 r = 0; r < n; ++r) {
      const auto& [i, name] = texts[static_cast<size_t>(order[static_cast<size_t>(first + r)])];
      out[i][static_cast<size_t>(std::stol(name))] = values[static_cast<size_t>(r)];
    }
  }
  return out;
}

}  // namespace redco
