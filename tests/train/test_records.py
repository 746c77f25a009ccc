"""Files of every kind become the same records; a bad one is named with its place."""

import bz2
import csv
import gzip
import importlib.util
import json
import lzma
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.train.data import records as module
from cutaway.train.data.records import blocks, records
from cutaway.train.data.sources import Source, find

PAIR = ("source", "target")
PAIRS = [{"source": "Go.", "target": "Va !"}, {"source": "He ran — fast.", "target": "Il a couru."}]
END = "<|endoftext|>"


def texts(*paths, **more):
    return [record["text"] for record, _ in records(paths, **more)]


def pairs(*paths, **more):
    return [record for record, _ in records(paths, fields=PAIR, **more)]


def refusal(*paths, **more):
    with pytest.raises(CutawayError) as error:
        list(records(paths, **more))
    return str(error.value)


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


# plain text


def test_a_text_without_separators_is_one_document(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One.\n\nTwo.\n")
    assert texts(path) == ["One.\n\nTwo."]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_of_endoftext_divide_documents_and_the_line_break_before_goes_with_them(tmp_path, line_end):
    path = tmp_path / "a.txt"
    lines = ["One.", "More.", END, "Two.", f"{END} \t", "", END, END, "Three.", END]
    path.write_bytes((line_end.join(lines) + line_end).encode())
    assert texts(path) == [f"One.{line_end}More.", "Two.", "Three."]


def test_endoftext_inside_a_line_is_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(f"One{END}Two\n {END}\n{END}x\nThree")
    assert texts(path) == [f"One{END}Two\n {END}\n{END}x\nThree"]


def test_each_document_knows_the_line_it_begins_on(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(f"One.\nMore.\n{END}\nTwo.\n{END}\n\nThree.")
    assert [where.line for _, where in records([path])] == [1, 4, 6]


def test_a_byte_order_mark_is_no_text(tmp_path):
    for name, data in {
        "a.txt": "Hé",
        "b.jsonl": '{"text": "Hé"}',
        "c.tsv": "text\nHé\n",
        "d.csv": "text\nHé\n",
    }.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + data.encode())
        assert texts(tmp_path / name) == ["Hé"], name


def test_only_line_feeds_end_a_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\none\u2028two\x0b\x85three\n", newline="")
    assert texts(path) == ["one\u2028two\x0b\x85three"]


words = st.lists(st.text(st.sampled_from("ab\u00e9\u3042.\u3000 \n\t'1"), max_size=30), max_size=40)


@given(documents=st.lists(words.map(" ".join), max_size=6), size=st.integers(64, 300), final=st.booleans())
@settings(max_examples=150, deadline=None)
def test_blocks_of_any_size_hold_the_same_documents(documents, size, final):
    text = f"\n{END}\n".join(documents) + (f"\n{END}\n" if final else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_text(text, encoding="utf-8", newline="")
        whole = texts(path)
        found = []
        data = b""
        for block in blocks(Source((path,), "text"), ("text",), None, size):
            assert len(block.data[0]) <= size
            assert block.line == 1 + data.count(b"\n")
            assert block.offset == len(data)
            data += block.data[0]
            for record, where in block.records():
                if where.continues:
                    found[-1] += record["text"]
                else:
                    found.append(record["text"])
    assert data == text.encode()
    assert found == whole
    assert whole == [one for one in (doc.removesuffix("\n") if i == len(documents) - 1 and not final else doc
                                     for i, doc in enumerate(documents)) if one.strip()]  # fmt: skip


def test_one_endless_line_is_read_in_blocks_that_end_between_characters(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("é漢𝄞" * 5000 + ".", encoding="utf-8")
    found = list(blocks(Source((path,), "text"), ("text",), None, 1013))
    assert len(found) > 40
    assert "".join(block.text() for block in found) == "é漢𝄞" * 5000 + "."
    assert [block.begins for block in found] == [True] + [False] * (len(found) - 1)


# the other kinds


def write_pairs(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("\n".join(json.dumps(pair) for pair in PAIRS) + "\n\n")
    elif name.endswith(".csv"):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([PAIR, *(pair.values() for pair in PAIRS)])
    else:
        path.write_text("".join(f"{pair['source']}\t{pair['target']}\n" for pair in PAIRS))
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.tsv", "a.txt", "a.csv"])
def test_every_kind_of_file_gives_the_same_records(tmp_path, name):
    path = write_pairs(tmp_path, name.replace("ndjson", "jsonl"))
    assert pairs(path.rename(tmp_path / name)) == PAIRS


@needs("pyarrow")
def test_parquet_gives_the_same_records(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    rows = [{**pair, "other": 1.5} for pair in PAIRS] * 500
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=64)
    found = list(records([path], fields=PAIR))
    assert [record for record, _ in found] == PAIRS * 500
    assert str(found[-1][1]).endswith("row 1,000")
    assert pairs(path, columns={"source": "target", "target": "source"})[0] == {"source": "Va !", "target": "Go."}
    assert "no column 'sauce'" in refusal(path, fields=PAIR, columns={"source": "sauce"})
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path} cannot be read as Parquet" in refusal(path, fields=PAIR)


@needs("pyarrow")
def test_a_list_in_parquet_stays_a_list_and_bytes_are_refused(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"text": ["a", "b"]}]), path)
    assert texts(path) == [["a", "b"]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"text": b"\xff"}]), path)
    assert "row 1: b'\\xff' is neither text nor a number" in refusal(path)


def compress_zst(data: bytes) -> bytes:
    import zstandard

    half = len(data) // 2
    return zstandard.compress(data[:half]) + zstandard.compress(data[half:])  # two frames


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": compress_zst}
ENDINGS = [".gz", ".bz2", ".xz", pytest.param(".zst", marks=needs("zstandard"))]


@pytest.mark.parametrize("ending", ENDINGS)
def test_packed_files_are_read_like_unpacked_ones(tmp_path, ending):
    text = "".join(f"Document {i}.\n{END}\n" for i in range(3000))
    (tmp_path / f"a.txt{ending}").write_bytes(PACKERS[ending](text.encode()))
    (tmp_path / f"b.JSONL{ending.upper()}").write_bytes(PACKERS[ending](b'{"text": "Last."}'))
    assert texts(tmp_path) == [f"Document {i}." for i in range(3000)] + ["Last."]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_packed_file_that_is_cut_short_or_damaged_is_named(tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    whole = PACKERS[ending](bytes(range(32, 127)) * 3000)
    path.write_bytes(whole[:-30])
    assert f"{path} is damaged or not whole" in refusal(path)
    path.write_bytes(b"Plain text, not packed at all.")
    assert f"{path} is damaged or not whole" in refusal(path)


def test_quoted_csv_may_hold_commas_quotes_and_line_breaks_and_lines_are_counted_right(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"a ""b"", c\nd"\n2,plain\n')
    found = list(records([path]))
    assert [record["text"] for record, _ in found] == ['a "b", c\nd', "plain"]
    assert [where.line for _, where in found] == [2, 4]


def test_a_long_article_in_csv_is_read_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\n" + "long " * 100_000)
    assert len(texts(path)[0]) == 500_000


def test_a_quotation_mark_never_closed_is_an_error_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text\nfine\n"open\n' + "more\n" * 10)
    assert f"{path}, line 3: this is not CSV" in refusal(path)


def test_quotation_marks_in_tab_separated_text_are_text(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"Go\tVa "!\n')
    assert pairs(path) == [{"source": '"Go', "target": 'Va "!'}]


def test_small_blocks_hold_the_same_rows(tmp_path):
    for name in ("a.jsonl", "a.tsv", "a.csv"):
        path = write_pairs(tmp_path, name)
        path.write_text(path.read_text() + "".join(path.read_text().splitlines(keepends=True)[-3:]) * 200)
        whole = pairs(path)
        cut = list(blocks(find([path], PAIR).read[0], PAIR, None, 256))
        assert len(cut) > 20
        found = [found for block in cut for found in block.records()]
        assert [record for record, _ in found] == whole
        assert [where for _, where in found] == [where for _, where in records([path], fields=PAIR)]


# parallel text


def write_parallel(folder, *sides):
    for ending, lines in sides:
        (folder / f"train.{ending}.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return [folder / f"train.{ending}.gz" for ending, _ in sides]


def test_files_alike_but_for_their_ending_are_read_line_by_line_together(tmp_path):
    paths = write_parallel(tmp_path, ("en", ["Go.", "Run!"]), ("fr", ["Va !", "Cours !"]))
    assert pairs(*paths) == [{"source": "Go.", "target": "Va !"}, {"source": "Run!", "target": "Cours !"}]
    assert pairs(*paths[::-1])[0] == {"source": "Va !", "target": "Go."}


def test_columns_say_which_ending_is_which_also_in_a_folder(tmp_path):
    write_parallel(tmp_path, ("de", ["Geh."]), ("en", ["Go."]), ("fr", ["Va !"]))
    assert pairs(tmp_path, columns={"source": "fr", "target": "en"}) == [{"source": "Va !", "target": "Go."}]
    assert [path.name for path in find([tmp_path], PAIR, {"source": "fr", "target": "en"}).skipped] == ["train.de.gz"]


def test_parallel_files_of_unequal_length_are_refused_with_both_lengths(tmp_path):
    paths = write_parallel(tmp_path, ("en", ["Go."] * 5), ("fr", ["Va !"] * 4))
    assert f"{paths[1]} has 4 lines and {paths[0]} more" in refusal(*paths, fields=PAIR)


def test_a_lone_file_of_lines_is_refused_for_a_task_with_two_fields(tmp_path):
    paths = write_parallel(tmp_path, ("en", ["Go."]))
    assert "2 files like train.en and train.fr" in refusal(*paths, fields=PAIR)


def test_parallel_blocks_keep_lines_together(tmp_path):
    paths = write_parallel(tmp_path, ("en", [f"{i}" for i in range(999)]), ("fr", [f"{i}" * 20 for i in range(999)]))
    cut = list(blocks(find(paths, PAIR).read[0], PAIR, None, 500))
    assert len(cut) > 20
    rows = [(record["source"], record["target"], where.line) for block in cut for record, where in block.records()]
    assert rows == [(f"{i}", f"{i}" * 20, i + 1) for i in range(999)]


# columns


def test_columns_by_number_and_by_heading(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\tVa !\tGo.\n")
    assert pairs(path, columns={"source": 2, "target": 1}) == PAIRS[:1]
    path.write_text("id\tfrench\tenglish\n1\tVa !\tGo.\n")
    assert pairs(path, columns={"source": "english", "target": "french"}) == PAIRS[:1]


def test_keys_of_json_by_another_name(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "Go.", "fr": "Va !", "id": 1}')
    assert pairs(path, columns={"source": "en", "target": "fr"}) == PAIRS[:1]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a\tb\tc\n", None, "line 1: a table of 3 columns, and the task needs 2 (source, target): say which"),
        (
            "id\tsauce\n",
            {"source": "source"},
            "line 1: the heading has no column 'source', it has 'id', 'sauce'. Did you",
        ),
        ("a\tb\nc\n", None, "line 2: 'target' should be in column 1 (from 0), and there are 1 columns"),
        ("a\tb\n", {"source": 0, "target": 7}, "line 1: 'target' should be in column 7"),
        ("a\tb\n", {"source": 0}, "all of them"),
        ("a\tb\n", {"sauce": 0}, "no field 'sauce': it has source, target. Did you mean 'source'?"),
        ("a\tb\n", {"source": -1, "target": 0}, "from 0, not -1"),
        ("", None, "a table of records is expected"),
    ],
)
def test_a_table_that_does_not_fit_is_explained(tmp_path, text, columns, message):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    assert message in refusal(path, fields=PAIR, columns=columns)


# mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "Go."}', "there is no 'target', the record has 'source'"),
        ('{"source": "Go.", "tarket": ""}', "Did you mean 'tarket'?"),
        ('{"source": "Go.", ', "this is not JSON"),
        ('["Go.", "Va"]', "a record is a JSON object {...}, not a list"),
        ("[" * 100_000, "this is not JSON"),
        ("[{", "There must be one record per line"),
    ],
)
def test_a_bad_record_is_named_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n\n' + line + "\n")
    said = refusal(path, fields=PAIR)
    assert f"{path}, line 3: " in said
    assert message in said


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.tsv", "a.csv", "a.en", "a.txt.gz"])
def test_bytes_that_are_not_utf8_are_named_with_file_line_and_place(tmp_path, name):
    path = tmp_path / name
    start = {"jsonl": '{"text": "é"}\n{"text": "', "tsv": "text\né\n", "csv": "text\né\n"}.get(
        name.split(".")[1], "é\nb"
    )
    data = start.encode() + b"caf\xe9\n"
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    line = 1 + start.count("\n")
    said = refusal(path)
    assert f"{path}, line {line}: 0xe9 at byte {len(start.encode()) + 3} is not UTF-8 text." in said
    assert "iconv" in said


def test_the_second_of_two_parallel_files_is_named_when_it_is_not_utf8(tmp_path):
    (tmp_path / "a.en").write_bytes(b"Go.\nTea.\n")
    (tmp_path / "a.fr").write_bytes(b"Va.\nTh\xe9.\n")
    assert f"{tmp_path / 'a.fr'}, line 2: 0xe9 is not UTF-8" in refusal(
        tmp_path / "a.en", tmp_path / "a.fr", fields=PAIR
    )


@pytest.mark.parametrize(
    ("data", "hint"),
    [(gzip.compress(b"x", mtime=0), ".gz"), ("x".encode("utf-16"), "UTF-16"), (b"PAR1\xff", ".parquet")],
)
def test_a_file_of_another_kind_than_its_name_says_is_recognised(tmp_path, data, hint):
    (tmp_path / "a.txt").write_bytes(data)
    assert hint in refusal(tmp_path / "a.txt")


def test_a_line_without_end_is_refused_where_lines_are_records(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 1 << 20)
    monkeypatch.setattr(module, "BLOCK", 1 << 18)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ok"}\n' + b"x" * (6 << 20))
    assert "line 2 is more than 1,048,576 bytes long" in refusal(tmp_path / "a.jsonl")


def test_folders_are_read_in_order_without_hidden_files_caches_and_unknown_kinds(tmp_path):
    for name in ("b/2.txt", "a.txt", "b/1.txt", "b/picture.png", ".hidden/x.txt", "b/.x.txt", "cache/y.txt", "z.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'"{name}"')
    (tmp_path / "cache/CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    assert texts(tmp_path) == ['"a.txt"', '"b/1.txt"', '"b/2.txt"']
    assert sorted(path.name for path in find([tmp_path], ["text"]).skipped) == ["picture.png", "z.json"]


def test_a_file_of_any_name_can_be_given_as_text(tmp_path):
    (tmp_path / "wiki.test.raw").write_text("Text.")
    (tmp_path / "noending").write_text("More.")
    assert texts(tmp_path / "wiki.test.raw", tmp_path / "noending") == ["Text.", "More."]


def test_missing_empty_and_unreadable_paths_are_explained(tmp_path):
    (tmp_path / "stories.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    assert "Did you mean 'stories.txt'?" in refusal(tmp_path / "storys.txt")
    assert "It holds no files." in refusal(tmp_path / "empty")
    assert "name a file or a folder" in refusal()
    assert "neither a file nor a folder" in refusal(Path("/dev/null"))
    (tmp_path / "empty/picture.png").write_text("x")
    assert "It holds picture.png." in refusal(tmp_path / "empty")
