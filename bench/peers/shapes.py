"""The shapes of bench/*.yaml as Hugging Face configs, without dropout."""
from transformers import GPT2Config, LlamaConfig, T5Config

LLAMA = dict(vocab_size=32000, max_position_embeddings=8192, tie_word_embeddings=False, attn_implementation="sdpa")
CONFIGS = {
    "gpt2-124m": lambda: GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa"),
    "llama-134m": lambda: LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
                                      num_attention_heads=12, num_key_value_heads=12, **LLAMA),
    "llama-58m": lambda: LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=8,
                                     num_attention_heads=8, num_key_value_heads=8, **LLAMA),
    "llama-1.1b": lambda: LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
                                      num_attention_heads=32, num_key_value_heads=4, **LLAMA),
    "t5-small": lambda: T5Config(d_model=512, d_ff=2048, d_kv=64, num_layers=6, num_heads=8, vocab_size=32128,
                                 dropout_rate=0, decoder_start_token_id=0),
}


def config(name, layers=0):
    """The config of a shape, maybe with another number of layers."""
    c = CONFIGS[name]()
    if layers:
        setattr(c, "n_layer" if c.model_type == "gpt2" else "num_hidden_layers", layers)
    return c
