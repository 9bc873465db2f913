#include "commands/score.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/jsonl.h"
#include "base/words.h"
#include "metrics/classification.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

struct Line {
  Json prediction;
  std::vector<Json> references;
  std::string where;
};

std::vector<Line> read_lines(const std::string& path) {
  std::vector<Line> out;
  JsonLines lines(path);
  std::string text;
  while (lines.next(text)) {
    const std::string where = lines.where();
    Json j = parse_json_line(text, "[score] " + where);
    if (!j.contains("prediction"))
      throw ContentsError(
          "[score] {}: the line has no key prediction; expected {{\"prediction\": TEXT, \"reference\": TEXT}}, as "
          "redco predict writes",
          where);
    Line line{j["prediction"], {}, where};
    if (j.contains("references") && j["references"].is_array()) {
      for (const Json& r : j["references"]) line.references.push_back(r);
    } else if (j.contains("reference")) {
      line.references.push_back(j["reference"]);
    }
    if (line.references.empty())
      throw ContentsError("[score] {}: no \"reference\", and no list \"references\" with an entry", where);
    out.push_back(std::move(line));
  }
  if (out.empty()) throw ContentsError("[score] {} holds no prediction", path);
  return out;
}

std::string text_of(const Json& v, const Line& line, const std::string& metric) {
  if (!v.is_string())
    throw ContentsError("[score] {}: {} compares texts, got {}", line.where, metric, excerpt(v.dump()));
  return v.get<std::string>();
}
double number_of(const Json& v, const Line& line, const std::string& metric) {
  if (!v.is_number())
    throw ContentsError("[score] {}: {} compares numbers, got {}", line.where, metric, excerpt(v.dump()));
  return v.get<double>();
}
const Json& only_reference(const Line& line, const std::string& metric) {
  if (line.references.size() != 1)
    throw ContentsError("[score] {}: {} takes one reference, got {}", line.where, metric,
                        line.references.size());
  return line.references[0];
}

class Scores {
 public:
  Scores(std::vector<Line> lines, const ScoreOptions& o) : lines_(std::move(lines)), o_(o) {
    out_.push_back({"n", static_cast<double>(lines_.size())});
  }

  // Metrics of other values than texts, by name. exact_match compares values of any type.
  struct Metric {
    const char* name;
    void (Scores::*add)(const std::string& metric);
  };
  static const std::vector<Metric>& metrics() {
    static const std::vector<Metric> kMetrics = {
        {"exact_match", &Scores::add_exact_match},
        {"accuracy", &Scores::add_classes},
        {"f1", &Scores::add_classes},
        {"matthews", &Scores::add_classes},
        {"pearson", &Scores::add_correlation},
        {"spearman", &Scores::add_correlation},
    };
    return kMetrics;
  }

  void add(const std::string& metric) {
    for (const Metric& m : metrics())
      if (metric == m.name) return (this->*m.add)(metric);
    const auto& texts = predictions(metric);  // fills references_ too
    const auto scores = text_scores(metric, texts, references_, o_.text);
    out_.insert(out_.end(), scores.begin(), scores.end());
  }

  std::vector<std::pair<std::string, double>> take() { return std::move(out_); }

 private:
  void add_exact_match(const std::string& metric) {
    double same = 0;
    for (const Line& l : lines_)
      same += std::find(l.references.begin(), l.references.end(), l.prediction) != l.references.end();
    out_.push_back({metric, same / static_cast<double>(lines_.size())});
  }

  void add_correlation(const std::string& metric) {
    std::vector<double> x, y;
    for (const Line& l : lines_) {
      x.push_back(number_of(l.prediction, l, metric));
      y.push_back(number_of(only_reference(l, metric), l, metric));
    }
    out_.push_back({metric, metric == "pearson" ? pearson(x, y) : spearman(x, y)});
  }

  const std::vector<std::string>& predictions(const std::string& metric) {
    if (!predictions_.empty()) return predictions_;
    for (const Line& l : lines_) {
      auto& r = references_.emplace_back();
      for (const Json& v : l.references) r.push_back(text_of(v, l, metric));
      predictions_.push_back(text_of(l.prediction, l, metric));
    }
    return predictions_;
  }

  // A class that is an integer keeps its number, so that 1 is the positive class. Others are numbered -1, -2,
  // ...
  void add_classes(const std::string& metric) {
    std::map<std::string, i64> others;
    bool binary = true;
    auto label = [&](const Json& v, const Line& line) -> i64 {
      if (v.is_structured() || v.is_null())
        throw ContentsError("[score] {}: {} compares classes, got {}", line.where, metric, excerpt(v.dump()));
      const bool whole = v.is_number_integer() || v.is_boolean();
      const i64 id = v.is_boolean() ? static_cast<i64>(v.get<bool>())
                     : whole
                         ? v.get<i64>()
                         : others.try_emplace(v.dump(), -1 - static_cast<i64>(others.size())).first->second;
      binary = binary && whole && (id == 0 || id == 1);
      return id;
    };
    std::vector<i64> p, r;
    for (const Line& l : lines_) {
      p.push_back(label(l.prediction, l));
      r.push_back(label(only_reference(l, metric), l));
    }
    const ClassScores s = class_scores(p, r);
    if (metric == "accuracy") out_.push_back({metric, s.accuracy});
    if (metric == "matthews") out_.push_back({metric, s.matthews});
    if (metric != "f1") return;
    out_.insert(out_.end(), {{"f1_macro", s.f1_macro},
                             {"f1_micro", s.f1_micro},
                             {"f1_weighted", s.f1_weighted},
                             {"precision_macro", s.precision_macro},
                             {"recall_macro", s.recall_macro}});
    if (binary) out_.push_back({"f1_binary", s.f1_binary});
  }

  std::vector<Line> lines_;
  const ScoreOptions& o_;
  std::vector<std::string> predictions_;
  std::vector<std::vector<std::string>> references_;
  std::vector<std::pair<std::string, double>> out_;
};

}  // namespace

const std::vector<std::string>& score_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out = text_score_names();
    for (const auto& m : Scores::metrics())
      if (std::find(out.begin(), out.end(), m.name) == out.end()) out.push_back(m.name);
    return out;
  }();
  return kNames;
}

std::vector<std::pair<std::string, double>> score_file(const std::string& path, const ScoreOptions& o) {
  for (const std::string& m : o.metrics) {
    if (std::find(score_names().begin(), score_names().end(), m) != score_names().end()) continue;
    const std::string near = nearest(m, score_names());
    throw UsageError("[score] no metric '{}'; {}", excerpt(m),
                     near.empty() ? fmt::format("known: {}", fmt::join(score_names(), ", "))
                                  : "did you mean " + near + "?");
  }
  Scores scores(read_lines(path), o);
  for (const std::string& m : o.metrics) scores.add(m);
  return scores.take();
}

}  // namespace redco
