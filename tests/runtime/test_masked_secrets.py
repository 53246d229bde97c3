"""No password and no token of the environment, the command line or the script is in a report."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from probing import run_shapefix

from shapefix.runtime.agent.masking import Masker, is_secret_name, secret_arguments, secret_values

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"

TOKENS = {
    "hugging face": f"hf_{LETTERS}ab",
    "openai": f"sk-proj-{LETTERS}-{LETTERS}",
    "anthropic": f"sk-ant-api03-{LETTERS}_{LETTERS}",
    "github": f"ghp_{LETTERS}abcd",
    "github, fine-grained": f"github_pat_{LETTERS}_{LETTERS}",
    "gitlab": f"glpat-{LETTERS[:20]}",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": f"AIza{LETTERS}abc",
    "slack": f"xoxb-123456789012-{LETTERS}",
    "wandb": "0123456789abcdef0123456789abcdef01234567",
    "wandb, new": f"wandb_v1_{LETTERS}{LETTERS}",
    "replicate": f"r8_{LETTERS}abcde",
    "nvidia": f"nvapi-{LETTERS}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.{LETTERS}.{LETTERS}",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
@pytest.mark.parametrize("around", ["{}", "login failed: {}.", "token='{}'", '{{"key": "{}"}}', "a\n{}\nb"])
def test_known_tokens_are_masked_in_any_text(token: str, around: str) -> None:
    masked = Masker().mask(around.format(token))
    assert token not in masked
    assert LETTERS[4:20] not in masked
    assert "***" in masked
    assert masked.startswith(around.partition("{}")[0].format())


def test_a_private_key_and_a_password_in_a_url_are_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
    assert Masker().mask(f"key:\n{key}\nend") == "key:\n***\nend"
    assert Masker().mask("postgres://me:hunter22@db/x") == "postgres://me:***@db/x"
    assert Masker().mask(f"Authorization: Bearer {LETTERS}") == "Authorization: Bearer ***"


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)",
        "/home/me/.cache/huggingface/hub/models--gpt2/snapshots/607a30d783dfa663caf39e06633721c8d4cfcd7e/config.json",
        "sha256 " + "0123456789abcdef" * 4,
        "Basic operations; Bearer of news; task-specific-heads-are-initialized; risk-averse",
        "https://example.org:8080/path and sk-learn, hf_hub_download, gh-pages",
        "in hf_hub_download",
        "use sk-learn",
        "sk-learn-like-names-that-are-long, hf_transformerstrainer",
        "self.token_embedding(tokens) + self.position_embedding(positions)",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert Masker().mask(text) == text


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("HF_TOKEN", "whatever-it-is", True),
        ("WANDB_API_KEY", "0123456789", True),
        ("DB_PASSWORD", "hunter2", True),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG", True),
        ("MY_PAT", "abcdefgh", True),
        ("SENTRY_DSN", "https://key@sentry.example", True),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("USE_AUTH", "true", False),
        ("PWD", "/home/me", False),
        ("SSH_AUTH_SOCK", "/tmp/ssh-x/agent", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", str(Path(__file__)), False),
        ("MONKEY", "gibbon-and-others", False),
        ("EOS_TOKEN", "<|endoftext|>", False),
        ("DB_PASSWORD", "x", False),
    ],
)
def test_names_and_values_of_secrets(name: str, value: str, secret: bool) -> None:
    assert secret_values({name: value}) == ([value] if secret else [])
    assert not secret or is_secret_name(name.lower())


def test_secrets_on_the_command_line() -> None:
    arguments = ["--lr", "1e-3", "--hf-token", "abcdefgh", "--api-key=12345678", "wandb.api_key=ijklmnop"]
    assert secret_arguments(arguments) == ["abcdefgh", "12345678", "ijklmnop"]
    assert secret_arguments(["--max-tokens", "1000000", "--pad-token", "<|pad|>", "--token", "--fp16"]) == []


def test_values_are_masked_in_parts_and_in_quotes() -> None:
    masker = Masker(['correct "horse" battery', "hunter2"])
    assert masker.mask('it is correct "horse" battery.') == "it is ***."
    assert masker.mask(json.dumps({"x": 'correct "horse" battery'})) == '{"x": "***"}'
    assert masker.mask('cut off: correct "horse…') == "cut off: ***…"
    assert masker.mask('horse" battery and more') == "*** and more"
    assert masker.mask("hunter2 but not hunter22 or xhunter2") == "*** but not hunter22 or xhunter2"
    assert masker.mask(f"cut off: hf_{LETTERS[:6]}") == "cut off: hf_***"


def test_a_source_keeps_its_columns() -> None:
    text = f"login('{TOKENS['hugging face']}'); x = y.view(-1)\nlast = 1\n"
    masked = Masker().mask_source(text)
    assert [len(row) for row in masked.splitlines()] == [len(row) for row in text.splitlines()]
    assert masked.index("x = y") == text.index("x = y")
    assert LETTERS not in masked


SCRIPT = f"""
    import os, sys
    import torch

    os.environ["LATE_API_KEY"] = "late secret of a file"
    hard_coded = "{TOKENS["github"]}"; model = torch.nn.Linear(4, 2)
    class Model(torch.nn.Module):
        def forward(self, x, note):
            return model(x)
    password = os.environ["DB_PASSWORD"]
    print("password", password, "token {TOKENS["openai"]}", os.environ["LATE_API_KEY"], *sys.argv)
    print(password, file=sys.stderr)
    os.system("echo $HF_TOKEN")
    Model()(torch.ones(1, 4), os.environ["HF_TOKEN"])
    try:
        Model()(torch.ones(1, 4), password, {{}}[password])
    except KeyError:
        pass
    hard_coded = "{TOKENS["github"]}"; model(torch.ones(3, int("7")))
    raise RuntimeError(f"cannot log in with {{password}} and {{os.environ['LATE_API_KEY']}}")
"""
FAILING = SCRIPT.replace("torch.ones(3, int", "torch.ones(4, len('abcd'))) or (0, int")


@pytest.mark.slow
@pytest.mark.parametrize("script", [SCRIPT, FAILING, SCRIPT.replace("raise ", "sys.exit(password) #")])
def test_no_report_contains_a_secret(tmp_path: Path, script: str) -> None:
    (tmp_path / "train.py").write_text(dedent(script))
    secrets = {"HF_TOKEN": "plain words of a token", "DB_PASSWORD": 'hunter2 <&> "x"'}
    hidden = [
        *secrets.values(), "hunter2", "plain words", TOKENS["github"], TOKENS["openai"], LETTERS,
        "late secret", "given-secret", "hunter2 &lt;", "of a token",
    ]  # fmt: skip
    outputs = []
    for options in (["--report", "report.html"], ["--output-format", "json"], ["--output-format", "github"]):
        command = ["probe", *options, "train.py", "--", "--password", "given-secret"]
        ran = run_shapefix(*command, folder=tmp_path, **secrets)
        outputs += [ran.stdout, ran.stderr]
    outputs.append((tmp_path / "report.html").read_text())
    assert "hard_coded" in outputs[0] + outputs[-1] or script is not SCRIPT
    for output in outputs:
        assert [each for each in hidden if each in output] == [], output
    assert any("***" in output for output in outputs)
