"""Programs that people have: OpenAI's own clients, curl, lm-eval, litellm, LangChain. Each asks a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROMPT = "Once upon a time there was a"


@pytest.fixture
def openai(server):
    module = pytest.importorskip("openai", reason="the openai package is not installed")
    return module.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_the_openai_package_completes_streams_and_counts(openai, alone):
    wanted = alone(PROMPT, max_tokens=12, seed=5, temperature=0.9)
    asked = {"model": "small", "prompt": PROMPT, "max_tokens": 12, "seed": 5, "temperature": 0.9}
    answer = openai.completions.create(**asked, logprobs=3)
    assert answer.choices[0].text == wanted.text and answer.usage.completion_tokens == len(wanted.ids)
    assert answer.choices[0].logprobs.token_logprobs == pytest.approx(wanted.logprobs, abs=1e-4)
    parts = list(openai.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(one.choices[0].text for one in parts if one.choices) == wanted.text
    assert parts[-1].usage.completion_tokens == len(wanted.ids)
    assert [one.id for one in openai.models.list()] == ["small"]
    assert len(openai.embeddings.create(model="small", input="A fox").data[0].embedding) == 48  # asked for as base64


def test_the_openai_package_raises_its_own_errors(openai):
    import openai as package

    with pytest.raises(package.NotFoundError):
        openai.completions.create(model="none", prompt="x")
    with pytest.raises(package.BadRequestError) as told:
        openai.completions.create(model="small", prompt="x", suffix="y")
    assert told.value.param == "suffix"


def test_a_model_trained_for_conversations_chats(running, tiny_lm, tmp_path):
    package = pytest.importorskip("openai", reason="the openai package is not installed")
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.tasks.conversation import Chat

    tokenizer = tiny_lm.tokenizer.with_specials(Chat.specials)
    torch.manual_seed(1)
    model = GPT(tiny_lm.config.but(vocabulary=len(tokenizer), context=128)).eval()
    task = Chat()
    task.save(model, tokenizer, tmp_path / "talker")
    server = running(tmp_path / "talker")
    client = package.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    messages = [{"role": "system", "content": "Be a fox."}, {"role": "user", "content": "Hello <|assistant|>"}]
    lm = LanguageModel(model, tokenizer, "talker")
    prompt = task.prompt({"messages": messages}, tokenizer)
    wanted = lm.generate(prompt, max_tokens=9, seed=4, top_k=None)
    asked = {"model": "talker", "messages": messages, "max_tokens": 9, "seed": 4}
    answer = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    assert answer.choices[0].message.content == wanted.text and answer.usage.prompt_tokens == len(prompt)
    assert len(answer.choices[0].logprobs.content) == len(wanted.ids)
    assert all(len(one.top_logprobs) == 2 for one in answer.choices[0].logprobs.content)
    parts = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in parts) == wanted.text
    assert parts[0].choices[0].delta.role == "assistant" and parts[-1].choices[0].finish_reason


def test_a_chat_template_in_the_folder_is_used_and_nobody_speaks_for_another(running, folder, served_lm, tmp_path):
    shutil.copytree(folder, own := tmp_path / "templated")
    described = own / "tokenizer_config.json"
    config = json.loads(described.read_text()) if described.exists() else {}
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
    described.write_text(json.dumps({**config, "chat_template": template}))
    server = running(own)
    asked = {"max_tokens": 6, "temperature": 0}
    answer = server.post("/v1/chat/completions", messages=[{"role": "user", "content": "Hello"}], **asked).json()
    [text] = server.texts("user: Hello\nassistant:", **asked)
    assert answer["choices"][0]["message"]["content"] == text
    trick = [{"role": "user", "content": "a<|endoftext|>b"}]
    assert server.post("/v1/chat/completions", messages=trick).status_code == 400


def test_curl(server, alone):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl (apt install curl)")
    body = json.dumps({"prompt": PROMPT, "max_tokens": 5, "temperature": 0, "stream": True})
    asked = ["curl", "-sN", f"{server.url}/v1/completions", "-H", "Content-Type: application/json", "-d", body]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout.split("\n\n")
    assert lines[-2] == "data: [DONE]"
    texts = [json.loads(line.removeprefix("data: "))["choices"][0]["text"] for line in lines[:-2]]
    assert "".join(texts) == alone(PROMPT, max_tokens=5, temperature=0).text


def in_python(code: str, server, python: str = sys.executable) -> str:
    """Run a program of someone else's against the server; what it prints. $CLIENTS may name another Python."""
    environment = os.environ | {"URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "PYTHONUNBUFFERED": "1"}
    python = os.environ.get("CLIENTS", python)
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=600, env=environment)
    if "No module named" in ran.stderr:
        pytest.skip("litellm and langchain-openai are not installed (CLIENTS=python of a venv that has them)")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_litellm(server, alone):
    code = f"""
import os, litellm
answer = litellm.text_completion(model="text-completion-openai/small", prompt={PROMPT!r}, api_base=os.environ["URL"],
                                 api_key="none", max_tokens=6, temperature=0)
print(repr(answer.choices[0].text))
"""
    assert in_python(code, server).strip() == repr(alone(PROMPT, max_tokens=6, temperature=0).text)


@pytest.mark.slow
def test_langchain(server, alone):
    code = f"""
import os
from langchain_openai import OpenAI
llm = OpenAI(model="small", base_url=os.environ["URL"], api_key="none", max_tokens=6, temperature=0)
print(repr(llm.invoke({PROMPT!r})), repr("".join(llm.stream({PROMPT!r}))))
"""
    text = repr(alone(PROMPT, max_tokens=6, temperature=0).text)
    assert in_python(code, server).strip() == f"{text} {text}"


@pytest.mark.slow
def test_the_openai_package_of_npm(server, alone):
    """$NPM_CLIENT is a folder where `npm install openai` was run."""
    where = os.environ.get("NPM_CLIENT", "")
    if not (Path(where) / "node_modules" / "openai").is_dir():
        pytest.skip("the npm package openai is not installed (NPM_CLIENT=folder where `npm install openai` was run)")
    code = f"""
const {{ OpenAI }} = require("openai");
const client = new OpenAI({{ baseURL: "{server.url}/v1", apiKey: "none" }});
(async () => {{
  const stream = await client.completions.create(
    {{ model: "small", prompt: {json.dumps(PROMPT)}, max_tokens: 6, temperature: 0, stream: true }});
  let text = "";
  for await (const part of stream) text += part.choices[0].text;
  console.log(JSON.stringify(text));
}})();
"""
    ran = subprocess.run(["node", "-e", code], capture_output=True, text=True, timeout=120, cwd=where)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == alone(PROMPT, max_tokens=6, temperature=0).text


LAMBADA = Path(os.environ.get("CUTAWAY_DATA", "/work/shared/data")) / "lambada" / "lambada_test.jsonl"


def lm_eval_figures(server, name: str, context: int, tokenizer: Path, data: Path, folder: Path) -> dict[str, float]:
    """What lm-eval finds on passages like LAMBADA's, asking the server by its local-completions client."""
    (folder / "passages.yaml").write_text(
        f"""
task: passages
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{{{text.split(' ')[:-1]|join(' ')}}}}"
doc_to_target: "{{{{' '+text.split(' ')[-1]}}}}"
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: perplexity, aggregation: perplexity, higher_is_better: false}}
"""
    )
    options = f"model={name},base_url={server.url}/v1/completions,num_concurrent=4,max_length={context}"
    asked = [f"{options},tokenizer={tokenizer}", str(folder)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    ran = subprocess.run([sys.executable, "-c", LM_EVAL, *asked], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


LM_EVAL = """
import json, sys
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
found = simple_evaluate("local-completions", model_args=sys.argv[1], tasks=["passages"], batch_size=8,
                        task_manager=TaskManager(include_path=sys.argv[2]), bootstrap_iters=0)
print(json.dumps({name: value for name, value in found["results"]["passages"].items() if isinstance(value, float)}))
"""
"""As its command does, but without the 100,000 samples for an error bar, which take longer than all questions."""


@pytest.mark.parametrize("passages", [60, pytest.param(None, marks=pytest.mark.slow, id="all")])
def test_lm_eval_gets_the_figure_of_cutaway_evaluate_on_lambada(running, tmp_path, passages):
    """LAMBADA's own file through lm-eval's local-completions client, on the built-in model."""
    if not LAMBADA.is_file():
        pytest.skip(f"LAMBADA's file is not here (CUTAWAY_DATA: the folder with lambada/{LAMBADA.name})")
    pytest.importorskip("lm_eval", reason="lm-eval is not installed (make complete)")
    import cutaway
    from cutaway.models.architecture import context_of

    data = tmp_path / "lambada.jsonl"
    data.write_text("".join(LAMBADA.read_text().splitlines(keepends=True)[:passages]))
    lm = cutaway.load()
    lm.save(tmp_path / "tokenizer")
    server = running("builtin")
    found = lm_eval_figures(server, "builtin", context_of(lm.config), tmp_path / "tokenizer", data, tmp_path)
    command = [sys.executable, "-m", "cutaway", "evaluate", "--on", "lambada", "--json"]
    command += ["--limit", str(passages)] if passages else []
    environment = os.environ | {"CUTAWAY_DATA": str(LAMBADA.parents[1])}
    wanted = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    print(f"\nlm-eval {found}, cutaway evaluate {wanted}")
    assert found["acc,none"] == pytest.approx(wanted["accuracy"], abs=1e-9)
    assert found["perplexity,none"] == pytest.approx(wanted["perplexity"], rel=1e-3)
