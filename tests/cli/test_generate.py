from __future__ import annotations

import json

import pytest
from rich.console import Console

from cutaway.cli import screen


@pytest.fixture
def generate(cutaway, folder):
    return lambda *args, **more: cutaway("generate", "--model", folder, *args, **more)


def test_a_pipe_gets_the_prompt_and_its_continuation_and_nothing_else(generate, tiny_lm):
    ran = generate("Once upon", "-n", 8, "--seed", 3)
    result = tiny_lm.generate("Once upon", max_tokens=8, seed=3)
    assert ran.code == 0
    assert ran.out == "Once upon" + result.text + "\n"


def test_one_line_on_standard_error_says_why_it_ended_and_how_fast(generate):
    ran = generate("Once upon", "-n", 8, "--seed", 3)
    assert ran.err.count("\n") == 1
    assert "8 tokens" in ran.err and "tokens/s" in ran.err and "seed 3" in ran.err


def test_json_is_one_object_with_everything(generate, tiny_lm):
    ran = generate("Once upon", "-n", 8, "--seed", 3, "--temperature", 0.5, "--json")
    result = tiny_lm.generate("Once upon", max_tokens=8, seed=3, temperature=0.5)
    found = ran.json
    assert ran.err == ""
    assert (found["text"], found["ids"], found["seed"]) == (result.text, result.ids, 3)
    assert found["logprobs"] == pytest.approx(result.logprobs)
    assert (found["reason"], found["explanation"], found["dropped"]) == (result.reason, result.explanation, 0)
    assert found["prompt_ids"] == result.prompt_ids
    assert found["settings"]["temperature"] == 0.5


def test_every_setting_reaches_the_model(generate, tiny_lm):
    ran = generate(
        "Once", "-n", 12, "--seed", 9, "--temperature", 1.5, "--top-k", 100, "--top-p", 0.9, "--min-p", 0.01,
        "--repetition-penalty", 1.2, "--presence-penalty", 0.3, "--frequency-penalty", 0.2, "--logit-bias", "65=2.5",
        "--logit-bias", "66=-inf", "--stop", "zzz", "--stop", "qqq", "--overflow", "slide", "--json",
    )  # fmt: skip
    wanted = {
        "temperature": 1.5, "top_k": 100, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2,
        "presence_penalty": 0.3, "frequency_penalty": 0.2, "logit_bias": {65: 2.5, 66: float("-inf")},
        "seed": 9, "max_tokens": 12, "stop": ("zzz", "qqq"), "overflow": "slide",
    }  # fmt: skip
    assert ran.json["ids"] == tiny_lm.generate("Once", **wanted).ids
    assert ran.json["settings"]["logit_bias"] == {"65": 2.5, "66": "-inf"}


def test_greedy_is_top_k_1(generate, tiny_lm):
    wanted = tiny_lm.generate("Once upon", max_tokens=6, top_k=1).ids
    assert generate("Once upon", "-n", 6, "--greedy", "--json").json["ids"] == wanted
    assert generate("Once upon", "-n", 6, "--top-k", 1, "--json").json["ids"] == wanted
    assert generate("Once upon", "-n", 6, "--temperature", 0, "--json").json["ids"] == wanted
    ran = generate("Once upon", "-n", 6, "-t", "0")
    assert ran.out == "Once upon" + tiny_lm.tokenizer.decode(wanted) + "\n" and "seed" not in ran.err


def test_top_k_0_is_the_whole_vocabulary(generate):
    assert generate("Once", "-n", 1, "--top-k", 0, "--json").json["settings"]["top_k"] is None


def test_without_a_prompt_the_model_begins_a_text_of_its_own(generate, tiny_lm):
    wanted = tiny_lm.generate("", max_tokens=5, seed=1)
    assert generate("-n", 5, "--seed", 1, "--json").json["ids"] == wanted.ids
    assert generate("", "-n", 5, "--seed", 1, "--json").json["prompt_ids"] == []


def test_the_prompt_may_come_from_a_file_or_a_pipe(generate, tmp_path):
    (tmp_path / "prompt").write_text("Once upon\n")
    said = generate("Once upon", "-n", 4, "--seed", 1).out
    assert generate("--file", tmp_path / "prompt", "-n", 4, "--seed", 1).out == said
    assert generate("-n", 4, "--seed", 1, stdin=b"Once upon\n").out == said


def test_special_reads_the_end_token(generate, tiny_lm):
    found = generate("<|endoftext|>Once", "-n", 1, "--special", "--json").json
    assert found["prompt_ids"][0] == tiny_lm.tokenizer.end


def test_samples_are_a_list_and_several_texts(generate, tiny_lm):
    found = generate("Once", "-n", 4, "--samples", 3, "--seed", 5, "--json").json
    assert [one["ids"] for one in found] == [
        one.ids for one in tiny_lm.generate("Once", max_tokens=4, samples=3, seed=5)
    ]
    ran = generate("Once", "-n", 4, "--samples", 3, "--seed", 5)
    assert "── 1 of 3" in ran.out and "── 3 of 3" in ran.out
    assert "3 texts · 12 tokens" in ran.err


def test_beams_give_the_best_and_their_scores(generate, tiny_lm):
    wanted = tiny_lm.generate("Once", max_tokens=4, beams=3, best=2, length_penalty=0.5)
    found = generate("Once", "-n", 4, "--beams", 3, "--best", 2, "--length-penalty", 0.5, "--json").json
    assert [one["ids"] for one in found] == [one.ids for one in wanted]
    assert [one["score"] for one in found] == pytest.approx([one.score for one in wanted])
    assert isinstance(generate("Once", "-n", 4, "--beams", 3, "--json").json, dict)
    assert "score" in generate("Once", "-n", 4, "--beams", 3, "--best", 2).out


def test_a_batch_has_a_prompt_on_each_line_and_skips_blank_ones(generate, tiny_lm, tmp_path):
    (tmp_path / "prompts").write_text("Once upon\n\nA robot must\n")
    found = generate("--file", tmp_path / "prompts", "--batch", "-n", 4, "--seed", 1, "--json").json
    assert [one["prompt"] for one in found] == ["Once upon", "A robot must"]
    assert [one["ids"] for one in found] == [
        one.ids for one in tiny_lm.generate(["Once upon", "A robot must"], max_tokens=4, seed=1)
    ]


def test_a_batch_with_samples_keeps_each_text_with_its_prompt(generate, tmp_path):
    (tmp_path / "prompts").write_text("Once\nA robot")
    found = generate("--file", tmp_path / "prompts", "--batch", "-n", 2, "--samples", 2, "--json").json
    assert [one["prompt"] for one in found] == ["Once", "Once", "A robot", "A robot"]


def test_interactive_continues_each_line_until_the_input_ends(generate):
    ran = generate("--interactive", "-n", 3, "--seed", 1, stdin=b"Once\nA robot\n")
    assert ran.code == 0
    assert ran.out.startswith("Once") and "\nA robot" in ran.out
    lines = generate("--interactive", "-n", 3, "--json", stdin=b"Once\nA robot").out.splitlines()
    assert [json.loads(line)["prompt"] for line in lines] == ["Once", "A robot"]


def test_interactive_survives_a_prompt_that_is_too_long(generate):
    ran = generate("--interactive", "-n", 2, stdin=b"x " * 200 + b"\nOnce\n")
    assert ran.code == 0
    assert "cutaway: " in ran.err and "Once" in ran.out


def test_a_terminal_sees_the_prompt_dim_and_no_control_characters(generate, monkeypatch, capsys):
    console = Console(force_terminal=True, color_system="truecolor", markup=False)
    monkeypatch.setattr(screen, "out", lambda: console)
    ran = generate("Once \x1b[2J", "-n", 2)
    assert "\x1b[2mOnce ␛[2J\x1b[0m" in ran.out


def test_the_end_of_the_context_ends_the_text_with_its_reason(generate):
    found = generate("Once", "--logit-bias", "319=-inf", "--json").json
    assert found["reason"] == "length"
    assert len(found["prompt_ids"]) + len(found["ids"]) == 48


def test_slide_goes_on_and_says_what_it_dropped(generate):
    line = ["Once", "-n", 90, "--overflow", "slide", "--logit-bias", "319=-inf"]
    found = generate(*line, "--json").json
    assert len(found["ids"]) == 90 and found["dropped"] > 0
    assert "oldest dropped" in generate(*line).err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--temperature", -1], "or above"),
        (["--temperature", "nan"], "temperature"),
        (["--temperature", "inf"], "temperature"),
        (["--top-p", 1.5], "top-p"),
        (["--top-p", 0], "top-p"),
        (["--min-p", -0.1], "min-p"),
        (["--top-k", -3], "top-k"),
        (["--repetition-penalty", 0], "repetition penalty"),
        (["--presence-penalty", "nan"], "presence penalty"),
        (["--max-tokens", -1], "new tokens"),
        (["--samples", 0], "samples"),
        (["--beams", 0], "beams"),
        (["--best", 2], "best"),
        (["--beams", 2, "--best", 3], "best"),
        (["--beams", 2, "--samples", 2], "samples"),
        (["--seed", -1], "seed"),
        (["--stop", ""], "stop"),
        (["--overflow", "explode"], "slide"),
        (["--logit-bias", "the=3"], "50256=-inf"),
        (["--logit-bias", "5"], "50256=-inf"),
        (["--logit-bias", "999999=1"], "vocabulary"),
        (["--batch"], "prompt"),
        (["--interactive"], "--interactive"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_remedy(generate, line, said):
    ran = generate("Once", *line)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err and ran.err.count("\n") == 1 and "Traceback" not in ran.err


def test_an_empty_batch_is_refused(generate):
    ran = generate("--batch", stdin=b"\n \n")
    assert ran.code == 2 and "no prompt" in ran.err


def test_a_huge_prompt_is_refused_before_anything_is_written(generate):
    ran = generate("x " * 5000)
    assert (ran.code, ran.out) == (2, "") and "48" in ran.err


def test_a_prompt_that_is_not_utf8_is_refused_with_the_place_of_the_byte(generate, tmp_path):
    (tmp_path / "prompt").write_bytes(b"\xe9t\xe9")
    for ran in (generate("--file", tmp_path / "prompt"), generate(stdin=b"\xe9t\xe9"), generate("\udce9t\udce9")):
        assert ran.code == 2 and "position 0" in ran.err


def test_what_the_model_recommends_counts_where_no_flag_does_and_nothing_is_said_of_it(
    generate, folder, tiny_lm, tmp_path
):
    import shutil

    model = shutil.copytree(folder, tmp_path / "recommending")
    (model / "generation_config.json").write_text('{"do_sample": true, "temperature": 0.5, "top_k": 7}')
    ran = generate("Once upon", "-n", 8, "--seed", 3, "--json", "--model", model)
    assert ran.err == ""
    assert (ran.json["settings"]["temperature"], ran.json["settings"]["top_k"]) == (0.5, 7)
    assert ran.json["ids"] == tiny_lm.generate("Once upon", 8, seed=3, temperature=0.5, top_k=7).ids
    ran = generate("Once upon", "-n", 8, "--seed", 3, "--json", "--model", model, "--temperature", 1, "--top-k", 40)
    assert ran.json["ids"] == tiny_lm.generate("Once upon", 8, seed=3).ids
    assert "recommend" not in generate("Once upon", "-n", 8, "--model", model).err
