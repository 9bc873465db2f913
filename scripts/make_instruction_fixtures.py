#!/usr/bin/env python3
"""Makes tests/fixtures/instruct/*.jsonl: token ids and loss masks of training lines, from transformers.

Each line is {line, ids, in_loss, prompt_tokens}: a line of a user's file, the ids of the training example, the mask of
the loss, and the number of ids of a prediction's prompt. Conversations go through apply_chat_template with a template
that marks the assistant's turns ({% generation %}). Prompts and completions are tokenized together if the ids begin
with those of the prompt, as in TRL, otherwise each alone. Texts have the tokenizer's ids and its end token. Needs
transformers 5. The files are committed, so the tests do not need them. Usage: scripts/make_instruction_fixtures.py
"""
import json
import pathlib

from transformers import PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"

TEXTS = ["The lamp went out.", "Grüße aus Köln, 你好 😀!", "one\n\ntwo   three\t", "a", " leading and trailing "]
PAIRS = [
    ("What is 2 + 3? ", "5"),
    ("What is 2 + 3?", " 5"),
    ("Translate: hello =>", "Grüße"),
    ("Two words and a space ", "follow here"),  # a space that the tokenizer joins with the next word
    ("", "no prompt at all"),
    ("multi\nline\n", "\nanswer with a break"),
    ("abc", "def"),  # one word across the border
]
CHATS = [
    [("user", "Hi"), ("assistant", "Hello there!")],
    [("system", "Be brief."), ("user", "What is 2 + 3?"), ("assistant", "5"), ("user", "And 4 more?"), ("assistant", "9")],
    [("user", "a question"), ("assistant", "an answer"), ("user", "thanks")],
    [("system", "s"), ("user", "u\n\nv"), ("assistant", "Grüße 😀\nfrom two lines")],
    [("user", "x"), ("assistant", "y"), ("assistant", "z")],
]


def load(name):
    config = json.loads((ROOT / "tokenizers" / name / "tokenizer_config.json").read_text())
    special = {k: config.get(k) for k in ("bos_token", "eos_token", "unk_token", "pad_token") if config.get(k)}
    return PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "tokenizers" / name / "tokenizer.json"), **special)


def end(t, ids):
    if t.eos_token_id is not None and (not ids or ids[-1] != t.eos_token_id):
        ids.append(t.eos_token_id)
    return ids


def examples(t, template):
    for text in TEXTS:
        ids = end(t, list(t(text)["input_ids"]))
        yield {"line": {"text": text}, "ids": ids, "in_loss": [1] * len(ids), "prompt_tokens": 0}
    for prompt, completion in PAIRS:
        before, ids = list(t(prompt)["input_ids"]), list(t(prompt + completion)["input_ids"])
        if len(ids) <= len(before) or ids[: len(before)] != before:
            ids = before + t(completion, add_special_tokens=False)["input_ids"]
        ids = end(t, ids)
        mask = [0] * len(before) + [1] * (len(ids) - len(before))
        yield {"line": {"prompt": prompt, "completion": completion}, "ids": ids, "in_loss": mask,
               "prompt_tokens": len(before)}
    if template is None:
        return
    for chat in CHATS:
        messages = [{"role": r, "content": c} for r, c in chat]
        out = t.apply_chat_template(messages, chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
        prompt = 0
        if chat[-1][0] == "assistant":
            prompt = len(t.apply_chat_template(messages[:-1], chat_template=template, add_generation_prompt=True,
                                               return_dict=True)["input_ids"])
        yield {"line": {"messages": messages}, "ids": list(out["input_ids"]), "in_loss": list(out["assistant_masks"]),
               "prompt_tokens": prompt}


def main():
    marked = (ROOT / "chat_templates" / "chatml-generation.jinja").read_text()
    for name, template in (("gpt2", None), ("llama2", None), ("qwen", marked)):
        lines = [json.dumps(e) for e in examples(load(name), template)]
        (ROOT / "instruct" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines))


main()
