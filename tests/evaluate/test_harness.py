"""The adapter for lm-eval: against plain computations, and, where lm-eval is installed, against its own model class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutaway.errors import CutawayError
from cutaway.evaluate.harness import continuations, harness_model, loglikelihoods, rolling_loglikelihoods, rolling_rows

LONG = "Once upon a time there was a little fox who wanted to see what was on the other side of the hill. " * 3
PAIRS = [
    ("Once upon a time", " there was"),
    ("Once upon a time ", "there was"),  # the space belongs to the word
    ("", "A robot"),
    ("A robot must", " obey"),
    (LONG, " given"),  # longer than the context: its beginning goes
    ("  ", "x"),
]


def tokens(lm, context: str, continuation: str) -> tuple[list[int], list[int]]:
    """What the adapter must score, worked out by another way than its own."""
    if not context.strip():
        return [lm.config.end], lm.tokenizer.encode(context + continuation)
    spaces = context[len(context.rstrip()) :]
    before = lm.tokenizer.encode(context.rstrip())
    after = lm.tokenizer.encode(context.rstrip() + spaces + continuation)[len(before) :]
    return before[-(lm.config.context + 1 - len(after)) :], after


def test_loglikelihood_is_the_plain_sum_and_greedy_is_the_models_choice(tiny_lm, plain):
    own = tiny_lm.generate("Once upon", top_k=1, max_tokens=3).text
    pairs = [*PAIRS, ("Once upon", own)]
    for (context, continuation), (logprob, greedy) in zip(pairs, loglikelihoods(tiny_lm, pairs), strict=True):
        before, after = tokens(tiny_lm, context, continuation)
        logprobs, right = plain([*before, *after], len(before))
        assert logprob == pytest.approx(sum(logprobs), abs=1e-4)
        assert greedy == all(right)


def test_an_empty_continuation_is_certain(tiny_lm):
    assert loglikelihoods(tiny_lm, [("a", ""), ("Once", " upon")])[0] == (0.0, True)
    with pytest.raises(CutawayError, match="does not fit"):
        loglikelihoods(tiny_lm, [("a", LONG)])


def test_rolling_loglikelihood_scores_every_token_once_with_all_the_context_there_is(tiny_lm, plain):
    texts = ["A robot", LONG, ""]
    found = rolling_loglikelihoods(tiny_lm, texts)
    for text, value in zip(texts, found, strict=True):
        ids = [tiny_lm.config.end, *tiny_lm.tokenizer.encode(text)]
        expected = 0.0
        for first in range(1, len(ids), 48):  # 48 predictions at a time, the last window reaching back
            end = min(first + 48, len(ids))
            begin = max(0, end - 49)
            expected += sum(plain(ids[begin:end], first - begin)[0])
        assert value == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("length", [1, 2, 48, 49, 50, 97, 98, 150])
def test_rolling_windows_are_those_of_lm_eval(length):
    utils = pytest.importorskip("lm_eval.utils", reason="lm-eval is not installed")
    ids = list(range(length + 1))
    theirs = [
        utils.make_disjoint_window(pair)
        for pair in utils.get_rolling_token_windows(ids[1:], prefix_token=0, max_seq_len=48, context_len=1)
    ]
    ours = [(row.ids[: row.start], row.ids[row.start :]) for row in rolling_rows(ids, 48)]
    assert ours == theirs


def test_generation_stops_where_it_is_told_and_keeps_the_order(tiny_lm):
    free = tiny_lm.generate("Once upon", top_k=1, max_tokens=12).text
    stop = free[5:7]
    requests = [
        ("Once upon", {"until": [stop], "max_gen_toks": 12}),
        ("A robot", {"until": [], "max_gen_toks": 5, "do_sample": False, "temperature": 0.0}),
        ("Once upon", {"until": stop, "max_gen_toks": 12}),
        (LONG, {"max_gen_toks": 4}),
    ]
    answers = continuations(tiny_lm, requests)
    assert answers[0] == answers[2] == free[: free.index(stop)]
    assert answers[1] == tiny_lm.generate("A robot", top_k=1, max_tokens=5).text
    kept = tiny_lm.tokenizer.encode(LONG)[-(48 - 4) :]
    assert answers[3] == tiny_lm.generate(kept, top_k=1, max_tokens=4).text


def test_sampling_is_used_when_asked_for(tiny_lm):
    how = {"do_sample": True, "temperature": 1.5, "top_k": 0, "max_gen_toks": 20}
    [sampled] = continuations(tiny_lm, [("Once", how)])
    assert sampled == tiny_lm.generate("Once", temperature=1.5, top_k=None, max_tokens=20, seed=0).text


def test_more_new_tokens_than_fit_are_refused(tiny_lm):
    with pytest.raises(CutawayError, match="48 new tokens"):
        continuations(tiny_lm, [("Once", {"max_gen_toks": 48})])


def test_without_lm_eval_the_remedy_is_named(tiny_lm, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lm_eval.api.model", None)
    with pytest.raises(CutawayError, match="lm-eval is needed"):
        harness_model(tiny_lm)


@pytest.fixture(scope="module")
def harness():
    return pytest.importorskip("lm_eval", reason="lm-eval is not installed (pip install lm-eval)")


def test_the_adapter_answers_as_lm_evals_own_model_class(harness, tiny_lm, tmp_path):
    from lm_eval.api.instance import Instance

    HFLM = pytest.importorskip("lm_eval.models.huggingface", reason="accelerate is not installed").HFLM

    tiny_lm.save(tmp_path)
    theirs = HFLM(pretrained=str(tmp_path), device="cpu", batch_size=1, dtype="float32", max_length=48)
    ours = harness_model(tiny_lm)

    def ask(kind: str, arguments: list[tuple]) -> tuple[list, list]:
        requests = [Instance(kind, {}, args, number) for number, args in enumerate(arguments)]
        return getattr(ours, kind)(requests), getattr(theirs, kind)(requests)

    one, other = ask("loglikelihood", [pair for pair in PAIRS if pair[0].strip() or not pair[0]])
    for (logprob, greedy), (their_logprob, their_greedy) in zip(one, other, strict=True):
        assert logprob == pytest.approx(their_logprob, abs=1e-3)
        assert greedy == bool(their_greedy)
    one, other = ask("loglikelihood_rolling", [(LONG,), ("A robot",)])
    assert one == pytest.approx(other, abs=1e-3)
    settings = {"until": [" the"], "max_gen_toks": 10, "do_sample": False}
    one, other = ask("generate_until", [("Once upon a time", settings), ("A robot", settings), (LONG, settings)])
    assert one == other


ROWS = [
    {"question": "Once upon a", "choices": [" time", " fox", " hill"], "answer": 0},
    {"question": "A robot must", "choices": [" obey", " see", " conflict"], "answer": 2},
]


@pytest.fixture
def tiny_task(tmp_path, monkeypatch) -> Path:
    """A folder with a task for lm-eval, made of two questions, that needs no network."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "tiny.yaml").write_text(
        f"""
task: cutaway_tiny
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / "data.jsonl"}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
doc_to_choice: choices
target_delimiter: ""
metric_list: [{{metric: acc}}]
"""
    )
    return folder


def expected_accuracy(lm, plain) -> float:
    right = 0
    for row in ROWS:
        sums = []
        for choice in row["choices"]:
            before, after = tokens(lm, row["question"], choice)
            sums.append(sum(plain([*before, *after], len(before))[0]))
        right += sums.index(max(sums)) == row["answer"]
    return right / len(ROWS)


def test_lm_eval_runs_a_task_of_its_own_on_our_model(harness, tiny_lm, tiny_task, plain):
    """Offline, through lm-eval from end to end."""
    from lm_eval.tasks import TaskManager

    results = harness.simple_evaluate(
        model=harness_model(tiny_lm),
        tasks=["cutaway_tiny"],
        task_manager=TaskManager(include_path=str(tiny_task), include_defaults=False),
        bootstrap_iters=0,
    )
    assert results["results"]["cutaway_tiny"]["acc,none"] == expected_accuracy(tiny_lm, plain)


def test_cutaway_is_a_models_name_in_lm_evals_own_command_line(harness, tiny_lm, tiny_task, tmp_path, plain):
    tiny_lm.save(tmp_path / "model")
    command = [
        sys.executable, "-m", "cutaway.evaluate.lm_eval", "run", "--model", "cutaway",
        "--model_args", f"pretrained={tmp_path / 'model'},engine=torch", "--tasks", "cutaway_tiny",
        "--include_path", str(tiny_task), "--output_path", str(tmp_path / "out"),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert ran.returncode == 0, ran.stderr
    [written] = (tmp_path / "out").rglob("results_*.json")
    found = json.loads(written.read_text())
    assert found["config"]["model"] == "cutaway"
    wrong = [one.replace("engine=torch", "engin=torch") for one in command]
    ran = subprocess.run(wrong, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert ran.returncode == 2 and "Did you mean 'engine'?" in ran.stderr and "Traceback" not in ran.stderr
    assert found["results"]["cutaway_tiny"]["acc,none"] == expected_accuracy(tiny_lm, plain)


def test_the_name_is_registered_by_an_import_and_a_wrong_argument_is_refused(harness, tiny_lm, tmp_path):
    from lm_eval.api.registry import get_model

    import cutaway.evaluate.lm_eval  # noqa: F401

    tiny_lm.save(tmp_path)
    made = get_model("cutaway").create_from_arg_string(f"pretrained={tmp_path}", {"batch_size": 1, "device": "cpu"})
    assert made.lm.logits("Once").equal(tiny_lm.logits("Once"))
    with pytest.raises(CutawayError, match=r"has no 'pretraind': it has pretrained.*Did you mean 'pretrained'"):
        get_model("cutaway").create_from_arg_string("pretraind=gpt2")
