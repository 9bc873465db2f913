#include "tokenizers/encode_lines.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "base/words.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBlock = std::size_t{1} << 17;  // bytes of lines per block

// Writes to a file that is renamed at the end, or to standard output.
class LineWriter {
 public:
  explicit LineWriter(const std::string& path) {
    if (path != "-") file_.emplace(DurableFile::create(path));
  }
  void write(std::string_view lines) {
    if (file_) {
      file_->append(lines);
    } else if (std::fwrite(lines.data(), 1, lines.size(), stdout) != lines.size()) {
      throw IoError("writing standard output: {}", std::strerror(errno));
    }
  }
  void finish() {
    if (file_) {
      file_->commit();
    } else if (std::fflush(stdout) != 0) {
      throw IoError("writing standard output: {}", std::strerror(errno));
    }
  }

 private:
  std::optional<DurableFile> file_;
};

Json with_id(const Json& j) {
  Json out = Json::object();
  if (j.contains("id")) out["id"] = j["id"];
  return out;
}

// Lines that are encoded together, with their line numbers.
struct LineBlock {
  std::vector<std::string> lines;
  std::vector<i64> numbers;
};

void append_list(const char* key, const std::vector<i32>& ids, std::string& out) {
  out += key;
  char digits[16];
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (k > 0) out += ',';
    out.append(digits, std::to_chars(digits, digits + sizeof digits, ids[k]).ptr);
  }
  out += ']';
}

}  // namespace

void encode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o) {
  JsonLines lines(input);
  LineWriter out(output);
  const bool plain = name_unpacked(input).ends_with(".txt");  // a text per line
  const bool typed = input == "-" && ::isatty(0) == 1;        // a person types: answer each line
  auto encode = [&](const std::string& line, const std::string& where, std::string& to) {
    const Json j = plain ? Json{{"text", line}} : parse_json_line(line, where);
    const std::string text = json_line_text(j, "text", where),
                      pair = o.pair ? json_line_text(j, "pair", where) : "";
    Encoding e;
    try {
      if (o.pair)
        e = t.encode_pair(text, pair, o.max_length, o.special);
      else if (o.max_length)
        e.ids = t.encode_truncated(text, *o.max_length, o.special).ids;
      else
        e.ids = t.encode(text, o.special);
    } catch (const ContentsError& error) {
      throw ContentsError("{}: {}", where, error.what());
    }
    to += '{';
    if (const auto id = j.find("id"); id != j.end()) to += "\"id\":" + id->dump() + ",";
    append_list("\"ids\":[", e.ids, to);
    if (o.pair) append_list(",\"type_ids\":[", e.type_ids, to);
    to += "}\n";
  };
  OrderedWork<LineBlock, std::string> pool(
      typed ? 1 : worker_threads(),
      [&](const LineBlock& b, int) {
        std::string encoded;
        encoded.reserve(kBlock);  // ids take about as much text as their tokens
        for (std::size_t k = 0; k < b.lines.size(); ++k)
          encode(b.lines[k], lines.where(b.numbers[k]), encoded);
        return encoded;
      },
      [&](const std::string& encoded) { out.write(encoded); });
  pool.run([&]() -> std::optional<LineBlock> {
    LineBlock b;
    std::string line;
    for (std::size_t bytes = 0; bytes < kBlock && lines.next(line); bytes += b.lines.back().size()) {
      b.numbers.push_back(lines.line_number());
      b.lines.push_back(std::move(line));
      if (typed) break;
    }
    if (b.lines.empty()) return std::nullopt;
    return b;
  });
  out.finish();
}

void decode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o) {
  JsonLines lines(input);
  LineWriter out(output);
  std::string line;
  std::vector<i32> ids;
  while (lines.next(line)) {
    const std::string where = lines.where();
    const Json j = parse_json_line(line, where);
    const auto it = j.find("ids");
    if (it == j.end() || !it->is_array())
      throw ContentsError("{}: \"ids\" is missing or not a list; expected a list of ids", where);
    ids.clear();
    for (const Json& v : *it) {
      // The parser makes integers >= 0 unsigned; other values are negative, fractions or not numbers.
      if (!v.is_number_unsigned() || v.get<u64>() >= static_cast<u64>(t.vocab_size()))
        throw ContentsError("{}: {} is not an id of {}; expected integers from 0 to {}", where,
                            excerpt(v.dump()), t.name(), t.vocab_size() - 1);
      ids.push_back(v.get<i32>());
    }
    Json answer = with_id(j);
    answer["text"] = t.decode(ids, !o.special);
    out.write(answer.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
  }
  out.finish();
}

}  // namespace redco
