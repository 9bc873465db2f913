#include "text/tokenizer.h"

#include "commands.h"
#include "text/jsonl.h"

namespace redco::cli {

void add_tokenizer(CLI::App& app, Invocation& run) {
  struct Options {
    std::string what, input = "-", output = "-";
    TokenizerLines lines;
    bool no_special = false;
  };
  CLI::App* tokenizer = add_command(
      app, "tokenizer", "Text to token ids and back, a JSON object a line",
      "  echo '{\"text\": \"How are you?\"}' | redco tokenizer encode models/gpt2\n"
      "  redco tokenizer encode tokenizer.json --input texts.jsonl.gz --output ids.jsonl --max-length 512\n"
      "  redco tokenizer decode models/gpt2 --input ids.jsonl --no-special\n");
  tokenizer->require_subcommand(1);
  for (const bool encode : {true, false}) {
    auto o = std::make_shared<Options>();
    CLI::App* c =
        add_command(*tokenizer, encode ? "encode" : "decode",
                    encode ? "lines {\"text\": ...} to lines {\"ids\": [...]}; an id beside the text stays"
                           : "lines {\"ids\": [...]} to lines {\"text\": ...}; an id beside them stays",
                    "");
    c->add_option("DIR-or-FILE", o->what, "a Hugging Face folder, a tokenizer.json, or `bytes`")->required();
    c->add_option("--input", o->input, "JSONL file, plain or .gz; - is standard input")
        ->capture_default_str();
    c->add_option("--output", o->output, "JSONL file; - is standard output")->capture_default_str();
    if (encode) {
      c->add_flag("--pair", o->lines.pair,
                  "lines are {\"text\": ..., \"pair\": ...}; type_ids tell the two apart");
      c->add_option("--max-length", o->lines.max_length, "cut to this many ids, special ones included")
          ->check(CLI::Range(i64{1}, i64{1} << 40));
    }
    c->add_flag("--no-special", o->no_special,
                encode ? "without the special tokens that the tokenizer puts around a text"
                       : "leave special tokens out of the text");
    c->callback([o, encode, &run] {
      o->lines.special = !o->no_special;
      const auto t = load_tokenizer(o->what);
      (encode ? encode_lines : decode_lines)(*t, o->input, o->output, o->lines);
      run.exit_code = 0;
    });
  }
}

}  // namespace redco::cli
