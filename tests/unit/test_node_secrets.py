"""No secret leaves the node with the command line of a process."""

from __future__ import annotations

import time

import pytest

from pyinfra_vllm.node.collect.secrets import masked


@pytest.mark.parametrize(
    "words",
    [
        ["vllm", "serve", "--api-key", "topsecret"],
        ["vllm", "serve", "--api-key", "topsecret", "topsecret-too"],
        ["vllm", "serve", "--api-key=topsecret"],
        ["vllm", "serve", "--api_key=topsecret"],
        ["x", "--hf-token", "topsecret", "--port", "8000"],
        ["env", "HF_TOKEN=topsecret", "vllm"],
        ["env", "OPENAI_API_KEY=topsecret", "vllm"],
        ["sh", "-c", "export API_KEY=topsecret; vllm serve --api-key topsecret --port 1"],
        ["x", "--db-password", "topsecret"],
        ["x", "--ssl-keyfile-password=topsecret"],
        ["x", '{"api_key": "topsecret", "n": 1}'],
        ["x", "{'auth_token': 'topsecret'}"],
        ["x", "https://user:topsecret@example.org/"],
        ["x", "--download", "hf_topsecrettopsecret"],
        ["x", "Authorization: Bearer topsecret"],
        ["x", "-H", "X-Api-Key: topsecret"],
        ["x", "--api-key", "-topsecret"],
        ["x", "--api-key", "top secret"],
        ["sh", "-c", "serve --api-key 'topsecret word'"],
    ],
)
def test_values_of_keys_tokens_and_passwords_are_masked(words: list[str]) -> None:
    shown = masked(words)
    assert "secret" not in " ".join(shown)
    assert any("***" in word for word in shown)


def test_everything_else_stays_readable() -> None:
    words = [
        "vllm",
        "serve",
        "/model",
        "--max-num-batched-tokens",
        "256",
        "--tokenizer-mode",
        "x",
        "--port=8000",
    ]
    assert masked(words) == words
    assert masked(["x", "--api-key", "s", "--port", "1"]) == [
        "x",
        "--api-key",
        "***",
        "--port",
        "1",
    ]


def test_long_words_are_cut() -> None:
    assert len(masked(["x" * 100_000])[0]) <= 1024


def test_a_hostile_command_line_takes_no_time() -> None:
    started = time.process_time()
    masked(["a-key" * 1000, "key" * 5000, "-" * 5000, "x" * 100_000])
    assert time.process_time() - started < 0.5
