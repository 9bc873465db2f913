#include "tokenizers/tokenizer.h"

#include "base/log.h"
#include "base/words.h"
#include "ckpt/hub.h"
#include "commands.h"
#include "gguf/folder.h"
#include "tokenizers/encode_lines.h"
#include "tokenizers/train/train_tokenizer.h"

namespace redco::cli {
namespace {

void add_tokenizer_train(CLI::App& tokenizer, Invocation& run) {
  struct Options : TokenizerTraining {
    std::string kind = "bpe";
    bool no_bytes = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(
      tokenizer, "train", "Train a tokenizer on text; writes a Hugging Face folder",
      "  redco tokenizer train corpus.txt --output my-tokenizer\n"
      "  redco tokenizer train books/*.txt.gz chats.jsonl --output my-tokenizer --vocab-size 50257\n"
      "  redco tokenizer train corpus.txt --output my-tokenizer --special '<|endoftext|>' '<|im_start|>' "
      "'<|im_end|>'\n"
      "  redco tokenizer train corpus.txt --output my-tokenizer --model unigram --vocab-size 8000\n"
      "  redco train job.yaml model.tokenizer=my-tokenizer                # use it in a job\n"
      "  python -c 'AutoTokenizer.from_pretrained(\"my-tokenizer\")'       # and in transformers\n");
  c->add_option("FILES", o->files,
                "text files, one sequence per line; or lines {\"text\": ...} (.jsonl, .ndjson, .json); "
                "plain, .gz or .zst")
      ->required();
  expand_paths(c->add_option("--output", o->output,
                             "folder for tokenizer.json and tokenizer_config.json; created if missing"))
      ->required();
  c->add_option("--model", o->kind,
                "bpe: byte-level byte-pair encoding, as in GPT-2; unigram: as in SentencePiece")
      ->check(CLI::IsMember({"bpe", "unigram"}).description(""))
      ->type_name("bpe|unigram")
      ->capture_default_str();
  c->add_option("--vocab-size", o->vocab_size, "number of tokens, special tokens included")
      ->capture_default_str();
  c->add_option(
       "--special", o->special,
       "special tokens, which get the first ids in this order; </s>, <s>, <pad>, <mask> etc. get their roles")
      ->type_name("TOKEN")
      ->capture_default_str()
      ->expected(1, 1 << 16)
      ->allow_extra_args(false);  // with them CLI11 takes [CLS] for a list
  c->add_option("--min-frequency", o->min_frequency,
                "smallest count of a merged pair (bpe), or of a character that becomes a token (unigram)")
      ->capture_default_str();
  c->add_option("--split", o->split, "bpe: rule that splits text into words: gpt2, llama3 or qwen")
      ->type_name("gpt2|llama3|qwen")
      ->capture_default_str();
  c->add_flag("--no-byte-fallback", o->no_bytes,
              "unigram: omit the 256 byte tokens; unknown characters become <unk>");
  c->add_option("--threads", o->threads, "number of threads, 0: all cores; does not change the result")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  c->callback([o, &run] {
    o->model = o->kind == "bpe" ? TokenizerTraining::Model::bpe : TokenizerTraining::Model::unigram;
    o->byte_fallback = !o->no_bytes;
    const TrainedTokenizer t = train_tokenizer(*o);
    info("{} of text, {} words, {} distinct ones", human_bytes(t.text_bytes),
         human_count(static_cast<double>(t.n_words)), human_count(static_cast<double>(t.n_distinct_words)));
    if (t.vocab_size < o->vocab_size)
      info("the tokenizer has {} tokens instead of {}: the text gives no more merges", t.vocab_size,
           o->vocab_size);
    info("{}: {} tokens, {:.2f} bytes of the text each", o->output, t.vocab_size, t.bytes_per_token);
    run.exit_code = 0;
  });
}

}  // namespace

void add_tokenizer(CLI::App& app, Invocation& run) {
  struct Options {
    std::string what, input = "-", output = "-";
    TokenizerLines lines;
    bool no_special = false;
  };
  CLI::App* tokenizer = add_command(
      app, "tokenizer", "Text to token ids and back, a JSON object a line; new tokenizers",
      "  echo '{\"text\": \"How are you?\"}' | redco tokenizer encode models/gpt2\n"
      "  redco tokenizer encode tokenizer.json --input texts.jsonl.gz --output ids.jsonl --max-length 512\n"
      "  redco tokenizer decode models/gpt2 --input ids.jsonl --no-special\n"
      "  redco tokenizer train corpus.txt --output my-tokenizer --vocab-size 32000\n");
  tokenizer->require_subcommand(1);
  for (const bool encode : {true, false}) {
    auto o = std::make_shared<Options>();
    CLI::App* c =
        add_command(*tokenizer, encode ? "encode" : "decode",
                    encode ? "Convert lines {\"text\": ...} to lines {\"ids\": [...]}; keeps \"id\""
                           : "Convert lines {\"ids\": [...]} to lines {\"text\": ...}; keeps \"id\"",
                    "");
    c->add_option("DIR-or-FILE", o->what,
                  "Hugging Face folder, tokenizer.json, vocab.txt, SentencePiece .model, or `bytes`")
        ->required();
    expand_paths(c->add_option("--input", o->input, "JSONL file, plain, .gz or .zst; - is standard input"))
        ->capture_default_str();
    expand_paths(c->add_option("--output", o->output, "JSONL file; - is standard output"))
        ->capture_default_str();
    if (encode) {
      c->add_flag("--pair", o->lines.pair,
                  "lines are {\"text\": ..., \"pair\": ...}; type_ids mark the second text");
      c->add_option("--max-length", o->lines.max_length, "truncate to this many ids, special tokens included")
          ->check(CLI::Range(i64{1}, i64{1} << 40));
    }
    c->add_flag("--no-special", o->no_special,
                encode ? "do not add special tokens" : "remove special tokens from the text");
    c->callback([o, encode, &run] {
      o->lines.special = !o->no_special;
      const auto t = load_tokenizer(gguf::folder_of(ckpt::local_source(o->what), gguf::Contents::tokenizer));
      (encode ? encode_lines : decode_lines)(*t, o->input, o->output, o->lines);
      run.exit_code = 0;
    });
  }
  add_tokenizer_train(*tokenizer, run);
}

}  // namespace redco::cli
