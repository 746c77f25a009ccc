from __future__ import annotations


def test_the_count_of_gpt2_is_shown_matrix_by_matrix_without_its_weights(cutaway):
    ran = cutaway("parameters", "--model", "gpt2")
    assert (ran.code, ran.err) == (0, "")
    for number in ("124,439,808", "38,597,376", "7,087,872", "85,054,464", "768 × 2304", "× 12 blocks"):
        assert number in ran.out


def test_it_tells_why_the_paper_said_117_million(cutaway):
    words = " ".join(cutaway("parameters", "--model", "gpt2").out.split())
    assert "117M" in words and "40,478" in words and "116,929,536" in words


def test_all_four_sizes_are_known_by_name(cutaway):
    totals = [
        cutaway("parameters", "--model", f"gpt2{size}", "--json").json["total"]
        for size in ("", "-medium", "-large", "-xl")
    ]
    assert totals == [124_439_808, 354_823_168, 774_030_080, 1_557_611_200]


def test_a_folder_is_counted_from_its_configuration_alone(cutaway, folder, tmp_path, tiny):
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    found = cutaway("parameters", "--model", tmp_path, "--json").json
    assert found["total"] == sum(parameter.numel() for parameter in tiny.parameters())
    assert found["paper"] is None
    assert "paper" not in cutaway("parameters", "--model", tmp_path).out


def test_json_has_every_matrix_of_every_block(cutaway):
    found = cutaway("parameters", "--model", "gpt2", "--json").json
    assert len(found["matrices"]) == 148
    assert found["matrices"][4] == {
        "name": "blocks.0.attention.queries_keys_values.weight", "stored": "h.0.attn.c_attn.weight",
        "what": "query, key and value", "block": 0, "shape": [768, 2304], "count": 1_769_472,
    }  # fmt: skip


def test_a_folder_without_a_model_is_refused(cutaway, tmp_path):
    ran = cutaway("parameters", "--model", tmp_path)
    assert ran.code == 2 and str(tmp_path) in ran.err
