"""`/v1/completions` as OpenAI's clients expect it, held against what the model writes alone."""

from __future__ import annotations

import json

import pytest

PROMPT = "Once upon a time there was a"
SETTINGS = [
    {"temperature": 0},
    {"temperature": 0.8, "seed": 3},
    {"temperature": 1.5, "seed": 4, "top_p": 0.7},
    {"seed": 5, "top_k": 7, "min_p": 0.02},
    {"seed": 6, "presence_penalty": 1.5, "frequency_penalty": 0.7},
    {"seed": 7, "repetition_penalty": 1.7},
]


def events(text: str) -> list[dict]:
    lines = [part.removeprefix("data: ") for part in text.split("\n\n") if part]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_text_is_what_the_model_writes_alone_whole_or_streamed(server, alone, settings):
    wanted = alone(PROMPT, max_tokens=24, **settings)
    answer = server.complete(PROMPT, max_tokens=24, **settings)
    [choice] = answer["choices"]
    assert choice["text"] == wanted.text
    assert choice["finish_reason"] == {"end": "stop", "length": "length"}[wanted.reason]
    assert answer["usage"] == {
        "prompt_tokens": len(wanted.prompt_ids),
        "completion_tokens": len(wanted.ids),
        "total_tokens": len(wanted.prompt_ids) + len(wanted.ids),
    }
    pieces = events(server.post("/v1/completions", prompt=PROMPT, max_tokens=24, stream=True, **settings).text)
    assert "".join(one["choices"][0]["text"] for one in pieces) == wanted.text
    assert pieces[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_a_piece_says_how_the_text_ended_only_if_it_is_the_last(server, monkeypatch):
    """Also where several tokens are handed over at once: who reads up to the first reason must have the whole text."""
    from cutaway.serve.writer import Job

    async def late(job):
        left = {index for index, _ in enumerate(job.sequences)}
        some = []
        while left:
            some.append(await job.ready.get())
            left -= {step.index for step in some if step.reason}
        yield some

    monkeypatch.setattr(Job, "steps", late)
    pieces = events(server.post("/v1/completions", prompt=PROMPT, max_tokens=9, n=2, seed=3, stream=True).text)
    for index in (0, 1):
        *before, last = [one["choices"][0] for one in pieces if one["choices"][0]["index"] == index]
        assert before and last["finish_reason"] and not any(one["finish_reason"] for one in before)


def test_a_stream_tells_the_usage_when_it_is_asked(server):
    options = {"include_usage": True}
    found = events(server.post("/v1/completions", prompt=PROMPT, stream=True, stream_options=options).text)
    assert found[-1]["choices"] == [] and found[-1]["usage"]["completion_tokens"] <= 16
    assert all(one["usage"] is None for one in found[:-1])


def test_token_ids_are_prompts_and_several_prompts_give_several_texts(server, served_lm):
    ids = served_lm.ids(PROMPT)
    [text] = server.texts(PROMPT, temperature=0)
    assert server.texts(ids, temperature=0) == [text]
    fox = server.texts("The fox", temperature=0)
    assert server.texts([ids, served_lm.ids("The fox")], temperature=0) == [text, *fox]
    assert server.texts([PROMPT, "The fox"], temperature=0)[0] == text


def test_n_texts_for_each_prompt_in_order_and_the_best_of_many(server, alone):
    both = [PROMPT, "The fox"]
    wanted = [one.text for prompt in both for one in alone(prompt, max_tokens=9, seed=2, samples=3)]
    assert server.texts(both, n=3, seed=2, max_tokens=9) == wanted
    drawn = alone(PROMPT, max_tokens=9, seed=2, samples=5)
    best = max(drawn, key=lambda one: sum(one.logprobs) / max(1, len(one.logprobs)))
    answer = server.complete(PROMPT, best_of=5, seed=2, max_tokens=9)
    assert [one["text"] for one in answer["choices"]] == [best.text]
    assert answer["usage"]["completion_tokens"] == sum(len(one.ids) for one in drawn)


def test_log_probabilities_are_the_models_own_streamed_or_not(server, served_lm, alone):
    wanted = alone(PROMPT, max_tokens=8, temperature=0.5, seed=1)
    asked = {"max_tokens": 8, "temperature": 0.5, "seed": 1, "logprobs": 20}
    [choice] = server.complete(PROMPT, **asked)["choices"]
    told = choice["logprobs"]
    assert told["token_logprobs"] == pytest.approx(wanted.logprobs, abs=1e-4)
    assert len(told["tokens"]) == len(wanted.ids) == len(told["text_offset"])
    for at, (top, token) in enumerate(zip(told["top_logprobs"], told["tokens"], strict=True)):
        chances = served_lm.logits([*wanted.prompt_ids, *wanted.ids[:at]])[-1].log_softmax(-1)
        best = chances[: len(served_lm.tokenizer)].topk(20).values.tolist()
        assert sorted(top.values(), reverse=True)[:20] == pytest.approx(best, abs=1e-3)  # no two are written alike
        assert top[token] == told["token_logprobs"][at] and len(top) <= 21
    streamed = events(server.post("/v1/completions", prompt=PROMPT, stream=True, **asked).text)
    for name, values in told.items():
        parts = [one["choices"][0]["logprobs"] for one in streamed]
        assert [value for part in parts if part for value in part[name]] == values


@pytest.mark.parametrize("most", [0, 1, 5])
def test_an_echoed_prompt_is_scored_as_the_model_scores_it(server, served_lm, most):
    ids = served_lm.ids(PROMPT)
    [choice] = server.complete(ids, echo=True, logprobs=1, max_tokens=most, temperature=0)["choices"]
    told = choice["logprobs"]
    assert choice["text"].startswith(PROMPT)
    assert len(told["tokens"]) == len(ids) + most
    assert told["token_logprobs"][0] is None and told["top_logprobs"][0] is None
    scored = served_lm.logits(ids).log_softmax(-1)
    wanted = [float(scored[at, token]) for at, token in enumerate(ids[1:])]
    assert told["token_logprobs"][1 : len(ids)] == pytest.approx(wanted, abs=1e-3)
    assert told["text_offset"][: len(ids)] == [len(served_lm.tokenizer.decode(ids[:at])) for at in range(len(ids))]


def test_a_prompt_as_long_as_the_context_can_be_scored(server, served_lm):
    ids = [at % 300 for at in range(256)]
    [choice] = server.complete(ids, echo=True, logprobs=0, max_tokens=1, temperature=0)["choices"]
    assert len(choice["logprobs"]["token_logprobs"]) == 256


def test_a_stop_string_ends_the_text_and_is_left_out_of_it_and_of_its_tokens(server, alone):
    whole = alone(PROMPT, max_tokens=40, seed=8).text
    stop = whole[10:13]
    [choice] = server.complete(PROMPT, max_tokens=40, seed=8, stop=[stop], logprobs=0)["choices"]
    assert choice["text"] == whole[: whole.index(stop)] and choice["finish_reason"] == "stop"
    assert all(offset < len(choice["text"]) for offset in choice["logprobs"]["text_offset"])


def test_a_bias_forces_and_forbids_tokens(server, served_lm):
    token = served_lm.ids("fox")[0]
    [text] = server.texts(PROMPT, logit_bias={str(token): 100}, max_tokens=3, temperature=0)
    assert text == served_lm.tokenizer.decode([token] * 3)
    first = server.texts(PROMPT, max_tokens=1, temperature=0)
    likeliest = str(served_lm.predict(PROMPT, 1)[0].id)
    assert server.texts(PROMPT, max_tokens=1, temperature=0, logit_bias={likeliest: -100}) != first


def test_a_text_ends_where_the_context_is_full(server):
    [choice] = server.complete([5] * 250, max_tokens=50, temperature=0, logit_bias={"319": -100})["choices"]
    assert choice["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"prompt": "x", "suffix": "y"}, 400, "suffix"),
        ({"prompt": "x", "temperature": 2.5}, 400, "temperature"),
        ({"prompt": "x", "temperature": "NaN"}, 400, "temperature"),
        ({"prompt": "x", "model": "no-such"}, 404, "model"),
        ({"prompt": "x", "model": "../../etc"}, 404, "model"),
        ({"prompt": "x", "n": 3, "best_of": 2}, 400, "best_of"),
        ({"prompt": "x", "best_of": 2, "stream": True}, 400, "best_of"),
        ({"prompt": "x", "logprobs": 21}, 400, "logprobs"),
        ({"prompt": "x", "stop": ""}, 400, "stop"),
        ({"prompt": []}, 400, "prompt"),
        ({"prompt": [5] * 300}, 400, "prompt"),
        ({"prompt": [9999]}, 400, None),
        ({"prompt": "x", "logit_bias": {"9999": 1}}, 400, None),
        ({"prompt": {"a": 1}}, 400, None),
    ],
)
def test_mistakes_come_in_openais_form(server, body, status, param):
    answer = server.http.post("/v1/completions", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"].endswith((".", "?"))
    assert param is None or error["param"].startswith(param)


def test_one_who_forgets_the_kind_or_the_method_is_told(server):
    """`curl -d` alone says that it sends a form, and a browser that opens the address asks with GET."""
    body = b'{"prompt": "x", "max_tokens": 1}'
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        answer = server.http.post("/v1/completions", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 415 and "Content-Type: application/json" in answer.json()["error"]["message"]
    answer = server.http.get("/v1/completions")
    assert (
        answer.status_code == 405 and answer.headers["Allow"] == "POST" and "POST" in answer.json()["error"]["message"]
    )
    assert server.http.get("/v1/nothing").status_code == 404


def test_chat_is_refused_clearly_without_a_template(server):
    answer = server.post("/v1/chat/completions", messages=[{"role": "user", "content": "Hello"}])
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "no_chat_template"


def test_embeddings_are_the_mean_of_what_leaves_the_final_norm(server, served_lm):
    import base64

    import numpy as np

    texts = [PROMPT, "The fox"]
    answer = server.post("/v1/embeddings", input=texts).json()
    wanted = served_lm.embed(texts).numpy()
    np.testing.assert_allclose([one["embedding"] for one in answer["data"]], wanted, rtol=1e-3, atol=1e-4)
    packed = server.post("/v1/embeddings", input=texts, encoding_format="base64").json()["data"]
    found = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in packed]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    assert server.post("/v1/embeddings", input=texts, dimensions=7).status_code == 400


def test_texts_become_tokens_and_tokens_texts(server, served_lm):
    found = server.post("/tokenize", prompt=PROMPT).json()
    assert found["tokens"] == served_lm.ids(PROMPT) and found["count"] == len(found["tokens"])
    assert server.post("/detokenize", tokens=found["tokens"]).json() == {"prompt": PROMPT}


def test_the_openapi_document_describes_it(server):
    paths = server.http.get("/openapi.json").json()["paths"]
    assert {"/v1/completions", "/v1/explanations/lens", "/v1/embeddings", "/tokenize"} <= set(paths)
