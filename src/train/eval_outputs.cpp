#include "train/eval_outputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/ordered_work.h"
#include "base/words.h"
#include "data/images/image.h"
#include "metrics/text_metrics.h"
#include "train/predictor.h"
#include "train/prefetch.h"
#include "workdir/workdir_names.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

std::string outputs_folder(const std::string& workdir) { return join_path(workdir, workdir::kEvalOutputs); }

// Metrics of plugins that eval.metrics selects. If it is empty, all of them where the outputs have texts.
std::map<std::string, double> plugin_scores(const std::vector<std::string>& selected,
                                            const std::vector<std::string>& outputs) {
  std::map<std::string, double> out;
  std::optional<ScoredTexts> texts;
  for (const PluginMetric& m : plugin_metrics()) {
    if (!selected.empty() && std::ranges::find(selected, m.name) == selected.end()) continue;
    try {
      if (!texts) texts = scored_texts(outputs);
    } catch (const UsageError& e) {
      if (selected.empty()) break;
      throw UsageError("[eval] eval.metrics has {}, a metric of texts: {}", m.name, e.what());
    }
    out[m.name] = m.of(texts->predictions, texts->references);
  }
  return out;
}

}  // namespace

EvalOutputs make_outputs(const Pipeline& pipeline, const ParamTree& params, const Dataset& data,
                         i64 batch_size, i64 n, i64 most) {
  const bool measured =
      in_pipeline(pipeline, "measures_outputs()", [&] { return pipeline.measures_outputs(); });
  i64 count = data.size();
  if (!measured) count = std::min(count, n);
  if (most >= 0) count = std::min(count, most);
  std::vector<Example> examples;
  OrderedWork<i64, Example> work(
      n_readers(data.reading(), pipeline.settings->data.n_workers),
      [&](i64 i, int) { return data.outline(i); },
      [&](Example e) {
        e.ordinal = static_cast<i64>(examples.size());
        examples.push_back(std::move(e));
      });
  for (i64 i = 0; i < count; ++i) work.add(i);
  work.finish();
  const std::vector<std::string> answers = predict(pipeline, params, examples, batch_size);
  EvalOutputs out;
  std::string metrics;
  // All ranks have the same answers, so one rank computes the metrics for all.
  Context::current().world().on_first([&] {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const std::string text =
          in_pipeline(pipeline, "output()", [&] { return pipeline.output(examples[i], answers[i]); });
      const Json j = Json::parse(text, nullptr, false);
      if (!j.is_object())
        throw UsageError("[pipeline] output() returned {}, expected a JSON object", excerpt(text));
      out.lines.push_back(j.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    if (measured) {
      out.metrics = in_pipeline(pipeline, "output_metrics()",
                                [&] { return pipeline.output_metrics(examples, out.lines); });
      out.metrics.merge(plugin_scores(pipeline.settings->eval.metrics, out.lines));
      out.details = in_pipeline(pipeline, "output_details()",
                                [&] { return pipeline.output_details(examples, out.lines); });
      if (!out.details.empty() && !Json::parse(out.details, nullptr, false).is_object())
        throw UsageError("[pipeline] output_details() gave no JSON object: {}", excerpt(out.details));
    }
    std::map<std::string, std::string> exact;  // JSON has no infinities
    for (const auto& [name, value] : out.metrics) exact[name] = fmt::format("{:a}", value);
    metrics = Json(exact).dump();
  });
  metrics = Context::current().world().agree(metrics);
  const Json agreed = Json::parse(metrics);
  for (const auto& [name, value] : agreed.items())
    out.metrics[name] = std::strtod(value.get<std::string>().c_str(), nullptr);
  return out;
}

std::string outputs_path(const std::string& workdir, const ckpt::EvalFile& file) {
  return join_path(outputs_folder(workdir), ckpt::file_name_of(file));
}

void save_outputs(const std::string& workdir, i64 step, const EvalOutputs& outputs, i64 n) {
  const std::size_t count = std::min(outputs.lines.size(), static_cast<std::size_t>(n));
  if (count == 0 && outputs.details.empty()) return;
  make_dirs(outputs_folder(workdir));
  ckpt::EvalFile file{.step = step, .set = outputs.set, .details = true};
  if (!outputs.details.empty()) write_file_durable(outputs_path(workdir, file), outputs.details + "\n");
  if (count == 0) return;
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += outputs.lines[i] + "\n";
  file.details = false;
  write_file_durable(outputs_path(workdir, file), text);
}

std::vector<std::string> outputs_after(const std::string& workdir, i64 step) {
  std::vector<std::string> out;
  if (!is_folder(outputs_folder(workdir))) return out;
  for (const std::string& name : list_dir(outputs_folder(workdir))) {
    const auto file = ckpt::parse_eval_file(name);
    if (file && file->step > step) out.push_back(workdir::eval_output(name));
  }
  return out;
}

void remove_outputs_after(const std::string& workdir, i64 step) {
  for (const std::string& name : outputs_after(workdir, step)) remove_file(join_path(workdir, name));
}

std::vector<std::vector<std::string>> outputs_table(const EvalOutputs& outputs, std::size_t rows) {
  constexpr std::size_t kLongest = 4000;
  rows = std::min(rows, outputs.lines.size());
  std::vector<Json> parsed;
  std::vector<std::string> head;
  for (std::size_t i = 0; i < rows; ++i) {
    parsed.push_back(Json::parse(outputs.lines[i], nullptr, false));
    for (const auto& [name, value] : parsed.back().items())
      if (value.is_string() && !png_of_data_uri(value.get_ref<const std::string&>()) &&
          std::find(head.begin(), head.end(), name) == head.end())
        head.push_back(name);
  }
  std::vector<std::vector<std::string>> table;
  if (head.empty()) return table;
  table.push_back(head);
  for (const Json& j : parsed) {
    std::vector<std::string> row;
    for (const std::string& name : head) {
      std::string text = j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "";
      if (text.size() > kLongest) {
        std::size_t end = kLongest;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
        text = text.substr(0, end) + "...";
      }
      row.push_back(std::move(text));
    }
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace redco
