#include "commands/show_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/data_cache.h"
#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/lm_data.h"
#include "assembly/named_parts.h"
#include "assembly/training_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "comm/group.h"
#include "ops/cross_entropy.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"
#include "train/prefetch.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

ShownRow row_of(const Dataset& data, i64 i, const Tokenizer& t) {
  const Example e = data.get(i);
  const auto &ids = e.ids.at("input_ids"), &labels = e.ids.at("labels");
  const auto samples = e.ids.find("samples");
  ShownRow r;
  r.row = i;
  r.id = e.id;
  r.tokens = static_cast<i64>(ids.size());
  r.targets = std::count_if(labels.begin(), labels.end(), [](i32 l) { return l >= 0; });
  std::vector<i32> all = ids;
  // The last label of a window is the token that follows it.
  if (labels.back() >= 0) all.push_back(labels.back());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const i32 number = samples == e.ids.end() ? 1 : samples->second[std::min(k, ids.size() - 1)];
    if (r.samples.empty() || r.samples.back().number != number) r.samples.push_back({.number = number});
    ShownSample& s = r.samples.back();
    s.ids.push_back(all[k]);
    s.in_loss.push_back(k > 0 && labels[k - 1] >= 0);
  }
  for (ShownSample& s : r.samples)
    for (const i32 id : s.ids) s.tokens.push_back(t.id_to_token(id).value_or(fmt::format("<{}>", id)));
  return r;
}

// Escapes control characters, so that a row stays one line.
std::string visible(const std::string& token) {
  std::string out;
  for (const char c : token) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// Text of the ids, without the ids that the loss ignores; "" if other ids are not in the vocabulary.
std::string text_of(const std::vector<i32>& ids, const Tokenizer& tokenizer) {
  std::vector<i32> known;
  for (const i32 id : ids) {
    if (id == kIgnoredLabel) continue;
    if (!tokenizer.id_to_token(id)) return "";
    known.push_back(id);
  }
  return tokenizer.decode(known);
}

// The first n rows of data that a pipeline reads or makes.
ShownData shown_rows(const Dataset& data, const Pipeline& pipeline, const Tokenizer* tokenizer,
                     bool evaluation, i64 n) {
  ShownData out;
  out.evaluation = evaluation;
  const bool users = !pipeline.origin.empty();
  if (const std::string what = data.describe(); !what.empty() || !users) out.summary = {what};
  if (out.summary.empty()) out.summary = {counted(data.size(), "example")};
  out.examples = out.rows = data.size();
  i64 longest = 0, longest_target = 0;
  for (i64 i = 0; i < out.rows; ++i) {
    const i64 length = data.length(i), target = data.target_length(i);
    out.row_tokens += length + target;
    out.targets += target;
    out.shortest = i == 0 ? length + target : std::min(out.shortest, length + target);
    out.longest = std::max(out.longest, length + target);
    longest = std::max(longest, length);
    longest_target = std::max(longest_target, target);
  }
  out.max_length = longest + longest_target;
  if (out.max_length > 0)
    out.padding = 1 - static_cast<double>(out.row_tokens) / static_cast<double>(out.rows * out.max_length);
  std::vector<Example> shown;
  BatchShape shape;
  for (i64 i = 0; i < std::min(n, out.rows); ++i) {
    shown.push_back(data.get(i));
    shape.length = std::max(shape.length, data.length(i));
    shape.target_length = std::max(shape.target_length, data.target_length(i));
  }
  for (const Example& e : shown) {
    ShownRow& r = out.shown.emplace_back();
    r.row = static_cast<i64>(out.shown.size()) - 1;
    r.id = e.id;
    if (users) {
      r.fields = e;
      if (tokenizer)
        for (const auto& [name, ids] : e.ids)
          if (const std::string text = text_of(ids, *tokenizer); !text.empty()) r.texts[name] = text;
      continue;
    }
    // Labels of input_ids are classes, not tokens; the example names them.
    const bool writes = e.ids.count("labels") > 0 && e.ids.count("input_ids") == 0;
    if (!writes) r.example = pipeline.output(e, "{}");
    // The labels come last.
    for (const bool labels : {false, true})
      for (const auto& [name, ids] : e.ids) {
        if ((name == "labels") != labels || (!writes && name != "input_ids" && e.ids.count("input_ids")) ||
            name.ends_with(".types"))
          continue;
        ShownSample& s = r.samples.emplace_back();
        s.name = name;
        s.number = static_cast<i32>(r.samples.size());
        s.ids = ids;
        s.in_loss.assign(ids.size(), labels);
        for (const i32 id : ids)
          s.tokens.push_back(tokenizer ? tokenizer->id_to_token(id).value_or(fmt::format("<{}>", id))
                                       : fmt::format("{}", id));
        r.tokens += static_cast<i64>(ids.size());
        if (labels) r.targets += static_cast<i64>(ids.size());
      }
  }
  if (!users || shown.empty()) return out;
  ShownBatch& batch = out.batch.emplace();
  shape.rows = static_cast<i64>(shown.size());
  shape.mine = {0, shape.rows};
  try {
    const Batch b = collate_examples(pipeline, shown, shape);
    for (const auto& [name, t] : b.fields)
      batch.fields[name] = fmt::format("{} {}", name_of(t.dtype()), to_string(t.shape()));
    batch.weights = b.weights;
  } catch (const UsageError& e) {
    batch.error = e.what();
  }
  return out;
}

// Rows that a pipeline reads from files. nullopt: a user's pipeline whose open() opens nothing.
std::optional<ShownData> shown_by_pipeline(const JobConfig& given, const DataSource& from, bool evaluation,
                                           i64 n, const std::string& cache) {
  Context c({1, 1}, make_self_group());
  const Context::Use use(c);
  const JobConfig job = with_data_config(given);
  const std::unique_ptr<Tokenizer> tokenizer = job_tokenizer(job);
  std::unique_ptr<Model> model;
  ModelSource source;
  if (job.model.path || job.model.preset || job.model.arch) {
    source = model_source(job, tokenizer.get());
    model = make_job_model(job, source);
  }
  std::vector<NamedParts> named;  // those of predict(): one may read the texts
  const auto pipeline = make_job_pipeline(job, model.get(), tokenizer.get(), {}, source.folder);
  const auto used = in_pipeline(*pipeline, "predicts_with()", [&] { return pipeline->predicts_with(); });
  named = make_named_parts(job, &used);
  give_models(*pipeline, named);
  const std::shared_ptr<const Dataset> data =
      open_source(job, from, evaluation, *pipeline, source.folder, cache);
  if (!data && !pipeline_info(job.pipeline)) return std::nullopt;
  if (!data) throw UsageError("[data] pipeline {} does not open data", job.pipeline);
  return shown_rows(*data, *pipeline, tokenizer.get(), evaluation, n);
}

// Rows that a user's pipeline makes itself: those of the first epoch, or of the evaluation set of that name.
ShownData shown_by_source(const JobConfig& job, bool evaluation, const std::string& name, i64 n) {
  Context c({1, 1}, make_self_group());
  const Context::Use use(c);
  c.random.seed = static_cast<u64>(job.train.seed);
  const Assembly parts = assemble(job);
  const auto pipeline = make_training_pipeline(job, parts, batch_sizes(job, 1).per_device);
  std::shared_ptr<const Dataset> data;
  if (evaluation) {
    const auto sets = pipeline->checked_evaluation();
    std::vector<std::string> names;
    for (const EvalSet& set : sets) {
      names.push_back(set.name);
      if (set.name == name || (sets.size() == 1 && name.empty())) data = set.data;
    }
    if (sets.empty())
      throw UsageError(
          "[data] data.eval is missing: the files to show, and evaluation() of the pipeline returned no data");
    if (!data)
      throw UsageError("--source {}: expected one of the evaluation sets of the pipeline: {}",
                       name.empty() ? "is missing" : excerpt(name), fmt::join(names, ", "));
  } else {
    if (!name.empty()) throw UsageError("--source {}: data.train has no sources", excerpt(name));
    const ParamTree params = make_job_params(job, parts.source, parts.model.get(), pipeline->all_params(),
                                             training_storage(job), &parts.named);
    data = in_pipeline(*pipeline, "source()", [&] { return pipeline->source(params, {}); });
    if (!data) throw UsageError("[pipeline] source() returned null; expected a data set");
  }
  return shown_rows(*data, *pipeline, parts.tokenizer.get(), evaluation, n);
}

DataSource source_to_show(const DataSettings& data, bool evaluation, const std::string& name) {
  const std::vector<DataSource> all = data.sources(evaluation);
  if (all.empty())
    throw UsageError("[data] data.{} is missing: the files to show", evaluation ? "eval" : "train");
  if (name.empty() && all.size() == 1) return all[0];
  std::vector<std::string> names;
  for (const DataSource& s : all) {
    if (s.name == name) return s;
    if (!s.name.empty()) names.push_back(s.name);
  }
  if (names.empty())
    throw UsageError("--source {}: data.{} has no sources", name, evaluation ? "eval" : "train");
  throw UsageError("--source {}: expected one of the sources {}", name.empty() ? "is missing" : excerpt(name),
                   fmt::join(names, ", "));
}

}  // namespace

ShownData show_data(const JobConfig& job, bool evaluation, const std::string& name, i64 n) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (info && !info->needs_data)
    throw UsageError("[data] pipeline {} makes its data while it trains; there is nothing to show",
                     info->name);
  if (!info && job.data.sources(evaluation).empty()) return shown_by_source(job, evaluation, name, n);
  const DataSource from = source_to_show(job.data, evaluation, name);
  const DataCache cache(job);
  if (!info || !info->reads_lines)
    if (auto shown = shown_by_pipeline(job, from, evaluation, n, cache.path())) return *std::move(shown);
  const std::unique_ptr<Tokenizer> tokenizer = job_tokenizer(job);
  if (!tokenizer)
    throw UsageError("[model] no tokenizer; give model.tokenizer (`bytes` or a tokenizer's folder)");
  std::unique_ptr<Model> model;
  ModelSource source;
  if (job.model.path || job.model.preset || job.model.arch) {
    source = model_source(job, tokenizer.get());
    model = make_job_model(job, source);
  }
  const LmDataRequest request =
      lm_data_request(job, from, evaluation, *tokenizer, model.get(), source.folder, cache.path());
  const std::shared_ptr<const Dataset> data = open_lm_data(request, build_lm_data(request));

  ShownData out;
  out.evaluation = evaluation;
  out.summary = describe_lm_data(request, *data);
  out.rows = data->size();
  out.max_length = request.max_length;
  for (i64 i = 0; i < data->size(); ++i) {
    const i64 length = data->length(i);
    out.row_tokens += length;
    out.shortest = i == 0 ? length : std::min(out.shortest, length);
    out.longest = std::max(out.longest, length);
  }
  if (const auto* examples = dynamic_cast<const ExampleDataset*>(data.get())) {
    const RowCounts& c = examples->rows().counts();
    out.examples = examples->index().size();
    out.bad = examples->index().n_bad();
    out.targets = examples->index().n_targets();
    out.split = static_cast<i64>(c.split);
    out.truncated = static_cast<i64>(c.truncated);
    out.skipped = static_cast<i64>(c.skipped + c.without_target);
  } else {
    out.examples = out.rows;
    const TokenIndex& text = dynamic_cast<const WindowDataset&>(*data).index();
    // The first token of each document is no target if attention ends at documents.
    out.targets = out.row_tokens - (job.data.segmented() ? text.n_documents() - 1 : 0);
  }
  const bool packed = !evaluation && job.data.packing;
  const double places =
      static_cast<double>(out.rows) * static_cast<double>(packed ? out.max_length : out.longest);
  out.padding = 1 - static_cast<double>(out.row_tokens) / places;
  for (i64 i = 0; i < std::min(n, data->size()); ++i) out.shown.push_back(row_of(*data, i, *tokenizer));
  return out;
}

namespace {

template <class T>
void add_numbers(const std::string& name, const char* what, const std::vector<T>& numbers, std::string& s) {
  constexpr std::size_t kMost = 24;
  constexpr const char* kFormat = std::is_integral_v<T> ? " {}" : " {:.6g}";
  s += fmt::format("  {}: {}:", visible(name), counted(static_cast<i64>(numbers.size()), what));
  for (std::size_t i = 0; i < std::min(kMost, numbers.size()); ++i) s += fmt::format(kFormat, numbers[i]);
  s += numbers.size() > kMost ? " ...\n" : "\n";
}

void add_fields(const ShownRow& r, std::string& s) {
  for (const auto& [name, ids] : r.fields->ids) {
    add_numbers(name, "id", ids, s);
    if (const auto text = r.texts.find(name); text != r.texts.end())
      s += fmt::format("    '{}'\n", visible(text->second));
  }
  for (const auto& [name, values] : r.fields->values) add_numbers(name, "value", values, s);
  if (!r.fields->text.empty()) s += fmt::format("  text: '{}'\n", visible(r.fields->text));
}

}  // namespace

std::string to_text(const ShownData& d, bool color) {
  std::string s;
  for (const std::string& line : d.summary) s += line + "\n";
  if (d.longest > 1)
    s += fmt::format("rows of {} to {} {}, {:.1f} on average\n", d.shortest, d.longest,
                     d.batch ? "ids" : "tokens",
                     static_cast<double>(d.row_tokens) / static_cast<double>(d.rows));
  if (!d.shown.empty() && d.shown[0].example.empty() && !d.batch)
    s += "the loss counts the tokens in [brackets]\n";
  for (const ShownRow& r : d.shown) {
    if (r.fields) {
      s += fmt::format("\nrow {} of {}{}\n", r.row + 1, d.rows, r.id.empty() ? "" : ", id " + excerpt(r.id));
      add_fields(r, s);
    } else if (!r.example.empty()) {
      s += fmt::format("\nrow {} of {}\n  {}\n", r.row + 1, d.rows, r.example);
    } else {
      s += fmt::format("\nrow {} of {}{}: {} tokens{}, {} to learn\n", r.row + 1, d.rows,
                       r.id.empty() ? "" : ", id " + excerpt(r.id), r.tokens,
                       r.samples.size() > 1 && r.samples[0].name.empty()
                           ? fmt::format(" in {} samples", r.samples.size())
                           : "",
                       r.targets);
    }
    for (const ShownSample& sample : r.samples) {
      if (!sample.name.empty()) {
        s += fmt::format("  {}\n", sample.name);
      } else if (r.samples.size() > 1) {
        s += fmt::format("  sample {}\n", sample.number);
      }
      std::string line = "   ";
      for (std::size_t k = 0; k < sample.tokens.size(); ++k) {
        const std::string token = visible(sample.tokens[k]);
        line += sample.in_loss[k] == 0 ? " " + token
                : color                ? fmt::format(" \x1b[32m[{}]\x1b[0m", token)
                                       : fmt::format(" [{}]", token);
      }
      s += line + "\n";
    }
  }
  if (!d.batch) return s;
  if (!d.batch->error.empty()) return s + "\ncollate() fails on these rows:\n  " + d.batch->error + "\n";
  s += fmt::format("\nthe batch that collate() makes of {}\n",
                   counted(static_cast<i64>(d.shown.size()), "row"));
  for (const auto& [name, field] : d.batch->fields) s += fmt::format("  {}: {}\n", name, field);
  for (const auto& [name, weight] : d.batch->weights)
    s += fmt::format("  weight of the term {}: {:g}\n", name, weight);
  return s;
}

std::string to_json(const ShownData& d) {
  Json j = {{"split", d.evaluation ? "eval" : "train"},
            {"summary", d.summary},
            {"examples", d.examples},
            {"rows", d.rows},
            {"max_length", d.max_length},
            {"tokens", d.row_tokens},
            {"targets", d.targets},
            {"shortest_row", d.shortest},
            {"longest_row", d.longest},
            {"padding", d.padding},
            {"truncated", d.truncated},
            {"split_up", d.split},
            {"skipped", d.skipped},
            {"bad_lines", d.bad}};
  Json& rows = j["shown"] = Json::array();
  for (const ShownRow& r : d.shown) {
    Json row = {{"row", r.row}};
    if (!r.id.empty()) row["id"] = Json::parse(r.id, nullptr, false);
    if (!r.example.empty()) row["example"] = Json::parse(r.example, nullptr, false);
    if (r.fields) {
      row["ids"] = r.fields->ids;
      row["values"] = r.fields->values;
      if (!r.texts.empty()) row["texts"] = r.texts;
      if (!r.fields->text.empty()) row["text"] = r.fields->text;
      rows.push_back(std::move(row));
      continue;
    }
    row["tokens"] = r.tokens;
    row["targets"] = r.targets;
    for (const ShownSample& s : r.samples) {
      Json sample = {{"ids", s.ids}, {"tokens", s.tokens}, {"in_loss", s.in_loss}};
      if (!s.name.empty()) sample["name"] = s.name;
      row["samples"].push_back(std::move(sample));
    }
    rows.push_back(std::move(row));
  }
  if (d.batch && d.batch->error.empty())
    j["batch"] = {{"fields", d.batch->fields}, {"weights", d.batch->weights}};
  else if (d.batch)
    j["batch"] = {{"error", d.batch->error}};
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redco
