"""A decoder: norms by the root mean square, rotary positions, grouped keys and values, gated MLPs (LLaMA)."""
import redco


class TinyDecoder(redco.ModelFamily):
    class Config:
        vocab_size: int
        hidden_size: int
        intermediate_size: int
        num_hidden_layers: int
        num_attention_heads: int
        num_key_value_heads: int
        max_position_embeddings: int = 2048
        rms_norm_eps: float = 1e-6
        rope_theta: float = 10000.0
        initializer_range: float = 0.02

    def spec(self, p):
        c = self.config
        if c.hidden_size % c.num_attention_heads:
            self.fail("num_attention_heads", f"expected a divisor of hidden_size={c.hidden_size}")
        self.heads = {"n_head": c.num_attention_heads, "n_kv": c.num_key_value_heads}
        self.head_dim = c.hidden_size // c.num_attention_heads
        self.inv_freq = redco.rope_frequencies(c.rope_theta, self.head_dim)
        kv, plain = c.num_key_value_heads * self.head_dim, {"bias": False, "std": c.initializer_range}
        p.embedding("model.embed_tokens.weight", c.vocab_size, c.hidden_size, c.initializer_range)
        for i in range(c.num_hidden_layers):
            h = f"model.layers.{i}."
            p.norm(h + "input_layernorm", c.hidden_size, bias=False)
            p.linear(h + "self_attn.q_proj", c.hidden_size, c.hidden_size, **plain, **self.heads)
            p.linear(h + "self_attn.k_proj", kv, c.hidden_size, **plain, **self.heads, kv=True)
            p.linear(h + "self_attn.v_proj", kv, c.hidden_size, **plain, **self.heads, kv=True)
            p.linear(h + "self_attn.o_proj", c.hidden_size, c.hidden_size, **plain, **self.heads, heads_of="in")
            p.norm(h + "post_attention_layernorm", c.hidden_size, bias=False)
            p.linear(h + "mlp.gate_proj", c.intermediate_size, c.hidden_size, **plain, role="first")
            p.linear(h + "mlp.up_proj", c.intermediate_size, c.hidden_size, **plain, role="first")
            p.linear(h + "mlp.down_proj", c.hidden_size, c.intermediate_size, **plain, role="second")
        p.norm("model.norm", c.hidden_size, bias=False)
        p.linear("lm_head", c.vocab_size, c.hidden_size, **plain, role="head")

    def decode(self, params, inputs, o):
        def norm(own, name, x):
            return redco.gather_tokens(o, redco.rms_norm_of(own, name, x, self.config.rms_norm_eps))

        def block(own, x, i):
            h = f"model.layers.{i}."
            x = x + redco.residual(o, redco.self_attention(
                own, o, i, norm(own, h + "input_layernorm", x), [f"{h}self_attn.{k}_proj" for k in "qkvo"],
                **self.heads, head_dim=self.head_dim, key_mask=inputs.key_mask, positions=inputs.positions,
                inv_freq=self.inv_freq))
            a = norm(own, h + "post_attention_layernorm", x)
            gate, up = (redco.dense(own, f"{h}mlp.{k}_proj", a, o) for k in ("gate", "up"))
            return x + redco.residual(o, redco.dense(own, h + "mlp.down_proj", redco.gated("silu", gate, up), o))

        x = redco.residual(o, redco.embedding(params["model.embed_tokens.weight"], inputs.input_ids))
        for i in range(self.config.num_hidden_layers):
            x = redco.run_block(params, o, f"model.layers.{i}", x, lambda own, x, i=i: block(own, x, i))
        return redco.lm_head(params, "lm_head", norm(params, "model.norm", x), o)
