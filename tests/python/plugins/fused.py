"""GPT-2's computation and names: fused projections that are stored transposed, and names without a prefix."""
import redco


class TinyGpt2(redco.ModelFamily):
    class Config:
        vocab_size: int
        n_embd: int
        n_layer: int
        n_head: int
        n_positions: int

    hidden_size = property(lambda self: self.config.n_embd)
    n_layers = property(lambda self: self.config.n_layer)
    max_length = property(lambda self: self.config.n_positions)

    def canonical_name(self, stored):
        if stored.endswith((".attn.bias", ".attn.masked_bias")):
            return None
        return stored if stored.startswith(("transformer.", "lm_head.")) else "transformer." + stored

    def spec(self, p):
        c = self.config
        p.embedding("transformer.wte.weight", c.vocab_size, c.n_embd)
        p.embedding("transformer.wpe.weight", c.n_positions, c.n_embd)
        for i in range(c.n_layer):
            h = f"transformer.h.{i}."
            p.norm(h + "ln_1", c.n_embd)
            p.fused(h + "attn.c_attn", {"q": c.n_embd, "k": c.n_embd, "v": c.n_embd}, c.n_embd, transposed=True,
                    n_head=c.n_head)
            p.fused(h + "attn.c_proj", {"out": c.n_embd}, c.n_embd, transposed=True)
            p.norm(h + "ln_2", c.n_embd)
            p.fused(h + "mlp.c_fc", {"up": 4 * c.n_embd}, c.n_embd, transposed=True)
            p.fused(h + "mlp.c_proj", {"down": c.n_embd}, 4 * c.n_embd, transposed=True)
        p.norm("transformer.ln_f", c.n_embd)
        p.tie("lm_head.weight", "transformer.wte.weight")

    def decode(self, params, inputs, o):
        c = self.config
        x = redco.embedding(params["transformer.wte.weight"], inputs.input_ids)
        x = redco.residual(o, x + redco.embedding(params["transformer.wpe.weight"], inputs.positions))
        for i in range(c.n_layer):
            h = f"transformer.h.{i}."
            names = [f"{h}attn.c_attn[{k}]" for k in "qkv"] + [h + "attn.c_proj[out]"]
            y = redco.layer_norm_of(params, h + "ln_1", x)
            x = x + redco.residual(o, redco.self_attention(params, o, i, y, names, n_head=c.n_head,
                                                           head_dim=c.n_embd // c.n_head, key_mask=inputs.key_mask))
            y = redco.layer_norm_of(params, h + "ln_2", x)
            y = redco.activate("gelu_new", redco.dense(params, h + "mlp.c_fc[up]", y, o))
            x = x + redco.residual(o, redco.dense(params, h + "mlp.c_proj[down]", y, o))
        x = redco.gather_tokens(o, redco.layer_norm_of(params, "transformer.ln_f", x))
        return redco.lm_head(params, "lm_head", x, o)
