// Checks of the `data:` section.
#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/words.h"
#include "data/text/record_map.h"
#include "job/checks.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

// Names become parts of metric names and file names.
void check_source_name(const std::string& key, const std::string& name, std::vector<std::string>& seen,
                       Checks& c) {
  const bool valid = std::all_of(name.begin(), name.end(), [](unsigned char ch) {
    return std::isalnum(ch) != 0 || ch == '_' || ch == '-';
  });
  if (!valid)
    c.problem("{}: expected a name of letters, digits, _ and -", c.cite(key, excerpt(name)));
  else if (std::find(seen.begin(), seen.end(), name) != seen.end())
    c.problem("{}: the name is used twice; give each its own name", c.cite(key, name));
  seen.push_back(name);
}

void check_sources(const JobConfig& job, Checks& c) {
  const DataSettings& d = job.data;
  const auto one_of_two = [&](const char* files, const char* sources) {
    c.problem("data.{} ({}) and data.{} ({}) are both given; keep one", files,
              job.origins.where(fmt::format("data.{}", files)), sources,
              job.origins.where(fmt::format("data.{}[0]", sources)));
  };
  if (!d.train.empty() && !d.mixture.empty()) one_of_two("train", "mixture");
  if (!d.eval.empty() && !d.eval_sets.empty()) one_of_two("eval", "eval_sets");
  std::vector<std::string> sources, sets;
  for (std::size_t i = 0; i < d.mixture.size(); ++i)
    check_source_name(fmt::format("data.mixture[{}].name", i), d.mixture[i].name, sources, c);
  for (std::size_t i = 0; i < d.eval_sets.size(); ++i)
    check_source_name(fmt::format("data.eval_sets[{}].name", i), d.eval_sets[i].name, sets, c);
  DataSettings lists = d;
  for (const bool evaluation : {false, true})
    lists.each_list(evaluation, [&](const std::string& key, const std::vector<std::string>& files) {
      if (files.empty() && key.ends_with(".files"))
        c.problem("{} ({}) is empty; give at least one file", key, job.origins.where(key));
    });
}

// Files of pipeline lm are all texts or all records, unless data.format is given.
void check_one_kind(const JobConfig& job, Checks& c) {
  if (job.data.format || job.data.has_records()) return;
  std::string records, text;
  for (const bool evaluation : {false, true})
    for (const std::string& f : job.data.files(evaluation))
      (job.data.format_of({f}) == "text" ? text : records) = f;
  if (!records.empty() && !text.empty())
    c.problem(
        "data: {} is a {} file, but {} is a text; use one of the two for all training and evaluation data. A "
        "text becomes a line {{\"text\": \"...\"}} of a jsonl file. To read every file in one format, set "
        "data.format",
        excerpt(records, 200), job.data.format_of({records}), excerpt(text, 200));
}

// Files of pipeline lm whose names end in an unknown way would be read as text.
void check_endings(const JobConfig& job, Checks& c) {
  if (job.data.format) return;
  DataSettings lists = job.data;
  for (const bool evaluation : {false, true})
    lists.each_list(evaluation, [&](const std::string& key, const std::vector<std::string>& files) {
      for (std::size_t i = 0; i < files.size(); ++i)
        if (has_unknown_ending(files[i]) && !is_folder(files[i])) {
          const std::string item = fmt::format("{}[{}]", key, i);
          c.problem("{}: {}: {} has an unknown ending. Known are {}. For plain text set data.format=text",
                    job.origins.where(item), item, excerpt(files[i], 200), kKnownEndings);
        }
    });
}

}  // namespace

void check_data(const JobConfig& job, Checks& c) {
  const DataSettings& d = job.data;
  check_sources(job, c);
  const bool records = d.has_records();
  c.run([&] {
    const RecordMap map(d, true);
    if (map.rewrites() && !records && d.has(false))
      c.problem(
          "data.where and templates ({}) need data with keys or columns: jsonl, json, csv, tsv, parquet or arrow",
          job.origins.where(d.where           ? "data.where"
                            : d.text_template ? "data.template"
                                              : "data.fields"));
  });
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (info && !info->reads_lines) return;  // the pipeline's reader checks the other settings
  if (info && d.format == "parallel")
    c.problem(
        "{}: pipeline {} reads the formats text, jsonl, json, csv, tsv, parquet and arrow; use one of these",
        c.cite("data.format", *d.format), job.pipeline);
  if (info) {
    check_one_kind(job, c);
    check_endings(job, c);
  }
  if (!records && c.changed("data.packing") && info)
    c.problem("{}: text files are always packed; remove the key", c.cite("data.packing", false));
  // Settings of the other format.
  const auto idle = [&](const char* name, const char* format) {
    const std::string key = fmt::format("data.{}", name);
    if (c.changed(key))
      c.problem("{} ({}) has no effect: it needs data.format={}. Remove the key.", key,
                job.origins.where(key), format);
  };
  if (records) {
    idle("documents", "text");
    if (d.max_length && *d.max_length < 2)
      c.problem("{}: an example has at least 2 tokens; use 2 or more",
                c.cite("data.max_length", *d.max_length));
    if (!d.packing && d.attention_across)
      c.problem("{} has no effect with {}, where each row has one example; remove one of the two",
                c.cite("data.attention_across", *d.attention_across), c.cite("data.packing", false));
    if (d.fields.prompt.has_value() != d.fields.completion.has_value())
      c.problem("data.fields: prompt and completion need each other; set both to a key, or both to ~");
    if (d.fields.instruction.has_value() != d.fields.output.has_value())
      c.problem("data.fields: instruction and output need each other; set both to a key, or both to ~");
  } else if (d.has(false) || d.has(true)) {
    for (const char* name : {"too_long", "skip_bad", "chat_template"}) idle(name, "jsonl");
  }
}

}  // namespace redco
