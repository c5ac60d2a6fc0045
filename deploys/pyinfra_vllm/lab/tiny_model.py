"""A tiny random Llama whose heads split by four: the checkpoint that the lab serves.

Needs numpy, safetensors and tokenizers (extra ``lab``), so import it only where
the files are made.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from safetensors.numpy import save
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")

_LAYERS, _HIDDEN, _HEADS, _HEAD_DIM, _INNER = 2, 64, 4, 32, 128
_BOS, _EOS, _TOKENS, _VOCABULARY = 256, 257, 258, 320
_POSITIONS = 2048
_SEED = 20240229
_CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

Array = np.ndarray[Any, np.dtype[np.float16]]


def files() -> dict[str, bytes]:
    """File name -> content of the whole checkpoint; the same bytes at every call."""
    shards = dict(zip(SHARDS, _shards(), strict=True))
    weight_map = {name: shard for shard, tensors in shards.items() for name in tensors}
    size = sum(tensor.nbytes for tensors in shards.values() for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    return {
        "config.json": _json(_config()),
        "generation_config.json": _json({"bos_token_id": _BOS, "eos_token_id": _EOS}),
        "tokenizer.json": _tokenizer().to_str(pretty=True).encode(),
        "tokenizer_config.json": _json(_tokenizer_config()),
        "chat_template.jinja": _CHAT_TEMPLATE.encode(),
        "model.safetensors.index.json": _json(index),
        **{shard: save(tensors, {"format": "pt"}) for shard, tensors in shards.items()},
    }


def _shards() -> tuple[dict[str, Array], dict[str, Array]]:
    """Embedding and all layers but the last in the first shard, the rest in the second."""
    random = np.random.default_rng(_SEED)
    first = {"model.embed_tokens.weight": _matrix(random, _VOCABULARY, _HIDDEN, 1.0)}
    for layer in range(_LAYERS - 1):
        first |= _layer(random, layer)
    second = _layer(random, _LAYERS - 1)
    second["model.norm.weight"] = np.ones(_HIDDEN, np.float16)
    second["lm_head.weight"] = _head(random)
    return first, second


def _layer(random: np.random.Generator, layer: int) -> dict[str, Array]:
    prefix, heads = f"model.layers.{layer}.", _HEADS * _HEAD_DIM
    shapes = {
        "self_attn.q_proj": (heads, _HIDDEN),
        "self_attn.k_proj": (heads, _HIDDEN),
        "self_attn.v_proj": (heads, _HIDDEN),
        "self_attn.o_proj": (_HIDDEN, heads),
        "mlp.gate_proj": (_INNER, _HIDDEN),
        "mlp.up_proj": (_INNER, _HIDDEN),
        "mlp.down_proj": (_HIDDEN, _INNER),
    }
    tensors = {
        f"{prefix}{name}.weight": _matrix(random, *shape, 0.15) for name, shape in shapes.items()
    }
    for norm in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"{prefix}{norm}.weight"] = np.ones(_HIDDEN, np.float16)
    return tensors


def _head(random: np.random.Generator) -> Array:
    """Letters and spaces weigh more, so that greedy text is readable and far from any tie."""
    weight = _matrix(random, _VOCABULARY, _HIDDEN, 0.1)
    for token in b" abcdefghijklmnopqrstuvwxyz":
        weight[token] *= 5
    weight[_BOS:] = 0
    return weight


def _matrix(random: np.random.Generator, rows: int, columns: int, deviation: float) -> Array:
    return (random.standard_normal((rows, columns)) * deviation).astype(np.float16)


def _config() -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float16",
        "hidden_size": _HIDDEN,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "head_dim": _HEAD_DIM,
        "hidden_act": "silu",
        "vocab_size": _VOCABULARY,
        "max_position_embeddings": _POSITIONS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": _BOS,
        "eos_token_id": _EOS,
        "use_cache": True,
    }


def _tokenizer() -> Tokenizer:
    """One token a byte, its id the byte's value, no merges."""
    vocabulary = {_visible(byte): byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<s>", "</s>")])
    assert tokenizer.get_vocab_size() == _TOKENS
    return tokenizer


def _visible(byte: int) -> str:
    """The character that stands for ``byte`` in byte-level vocabularies (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if byte in printable:
        return chr(byte)
    return chr(0x100 + [other for other in range(256) if other not in printable].index(byte))


def _tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": _POSITIONS,
        "chat_template": _CHAT_TEMPLATE,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
