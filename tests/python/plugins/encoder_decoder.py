"""An encoder-decoder model with the computation and the names of BART, whose tables are separate."""
import redco


class TinyBart(redco.ModelFamily):
    task = "seq2seq-lm"

    class Config:
        vocab_size: int
        d_model: int
        ffn_dim: int
        layers: int
        heads: int
        max_position_embeddings: int = 64
        pad_token_id: int = 1
        decoder_start_token_id: int = 2

    hidden_size = property(lambda self: self.config.d_model)
    n_layers = property(lambda self: self.config.layers)

    def spec(self, p):
        c = self.config
        p.embedding("model.shared.weight", c.vocab_size, c.d_model)
        for stack in ("encoder", "decoder"):
            at = f"model.{stack}."
            p.embedding(at + "embed_tokens.weight", c.vocab_size, c.d_model)
            p.embedding(at + "embed_positions.weight", c.max_position_embeddings + 2, c.d_model)
            p.norm(at + "layernorm_embedding", c.d_model)
            for i in range(c.layers):
                h = f"{at}layers.{i}."
                for name in ("self_attn", "encoder_attn")[: 1 if stack == "encoder" else 2]:
                    for k in "kvq":
                        p.linear(f"{h}{name}.{k}_proj", c.d_model, c.d_model, n_head=c.heads, kv=k != "q")
                    p.linear(f"{h}{name}.out_proj", c.d_model, c.d_model, n_head=c.heads, heads_of="in")
                    p.norm(f"{h}{name}_layer_norm", c.d_model)
                p.linear(h + "fc1", c.ffn_dim, c.d_model, role="first")
                p.linear(h + "fc2", c.d_model, c.ffn_dim, role="second")
                p.norm(h + "final_layer_norm", c.d_model)
        p.linear("lm_head", c.vocab_size, c.d_model, bias=False, role="head")

    def positions(self, mask, generating):
        seen, out = 0, []
        for i, token in enumerate(mask):
            out.append(2 + (max(seen, 0) if generating else i))
            seen += token
        return out

    def run(self, params, stack, ids, rows, o, memory=None, memory_mask=None, key_mask=None):
        c, at = self.config, f"model.{stack}."
        sizes = {"n_head": c.heads, "head_dim": c.d_model // c.heads}
        x = redco.embedding(params[at + "embed_tokens.weight"], ids)
        x = x + redco.embedding(params[at + "embed_positions.weight"], rows)
        x = redco.layer_norm_of(params, at + "layernorm_embedding", redco.residual(o, x))
        for i in range(c.layers):
            def block(own, x, i=i, h=f"{at}layers.{i}."):
                def names(a):
                    return [f"{h}{a}.{k}_proj" for k in ("q", "k", "v", "out")]

                y = redco.self_attention(own, o, i, x, names("self_attn"), **sizes, key_mask=key_mask,
                                         causal=stack == "decoder")
                x = redco.layer_norm_of(own, h + "self_attn_layer_norm", x + redco.residual(o, y))
                if stack == "decoder":
                    y = redco.cross_attention(own, o, i, x, names("encoder_attn"), **sizes, memory=memory,
                                              memory_mask=memory_mask)
                    x = redco.layer_norm_of(own, h + "encoder_attn_layer_norm", x + redco.residual(o, y))
                y = redco.gelu(redco.dense(own, h + "fc1", redco.gather_tokens(o, x), o))
                y = redco.residual(o, redco.dense(own, h + "fc2", y, o))
                return redco.layer_norm_of(own, h + "final_layer_norm", x + y)

            x = redco.run_block(params, o, f"{at}layers.{i}", x, block)
        return redco.gather_tokens(o, x)

    def encode(self, params, inputs, o):
        rows, tokens = inputs.input_ids.shape
        places = redco.arange(2, tokens + 2).reshape(1, -1).broadcast_to([rows, tokens])
        return self.run(params, "encoder", inputs.input_ids, places, o, key_mask=inputs.key_mask)

    def decode(self, params, inputs, o):
        x = self.run(params, "decoder", inputs.input_ids, inputs.positions, o, inputs.memory, inputs.memory_mask,
                     inputs.key_mask)
        return redco.lm_head(params, "lm_head", x, o)
