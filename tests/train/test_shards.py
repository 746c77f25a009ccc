"""Data sets: tokens as the task makes them, the same whatever the number of workers, made once, and never half made."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.tasks import Choice, Classification, Language, Similarity, Summary, Translation
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.data import digests, pieces, shards, workers
from cutaway.train.data.blocks import Block
from cutaway.train.data.shards import Dataset
from cutaway.train.data.sources import Source

END = "<|endoftext|>"
TEXT = "the little fox saw a robot on the hill and said it must obey, once upon a time there were orders"
WORDS = TEXT.split()
TRANSLATION = Translation(limit=64)


TINY = Tokenizer.train([TEXT] * 4, size=320)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return TINY


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 2000)


def make(*args, workers=1, **more) -> Dataset:
    return shards.prepare(*args, workers=workers, **more)


def stories(count: int, seed: int = 0) -> list[str]:
    dice = random.Random(seed)
    return [f"Story {i}: " + " ".join(dice.choices(WORDS, k=dice.randint(5, 60))) + "." for i in range(count)]


def write(path: Path, documents: list[str]) -> Path:
    path.write_text("".join(f"{document}\n{END}\n" for document in documents), encoding="utf-8")
    return path


def write_pairs(path: Path, pairs) -> Path:
    path.write_text("".join(json.dumps({"source": one, "target": two}) + "\n" for one, two in pairs))
    return path


def documents(split, tokenizer) -> list[str]:
    return [tokenizer.decode(split[i][1:]) for i in range(len(split))]


def contents(data: Dataset) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in data.folder.iterdir() if path.name != "dataset.json"}


def refusal(*args, **more) -> str:
    with pytest.raises(CutawayError) as error:
        make(*args, **more)
    return str(error.value)


# what is made


def test_documents_stand_in_a_row_each_behind_the_end_token(tmp_path, tokenizer):
    texts = stories(30)
    data = make([write(tmp_path / "a.txt", texts)], tokenizer, Language(), tmp_path / "cache", held_out=0)
    expected = [token for text in texts for token in [tokenizer.end, *tokenizer.encode(text)]]
    assert data.train.tokens.tolist() == expected
    assert data.train.tokens.dtype == np.uint16
    assert documents(data.train, tokenizer) == texts
    assert data.train.bytes == data.report.bytes == sum(len(text.encode()) for text in texts)
    assert (data.report.documents, data.report.tokens) == (30, len(expected))
    assert len(data.held) == len(data.held.tokens) == data.held.bytes == 0


plain = st.text(st.sampled_from("ab \n'é漢1.\u3000\t"), min_size=1, max_size=400).filter(str.strip)


@given(texts=st.lists(plain, min_size=1, max_size=4), block=st.integers(100, 700))
@settings(max_examples=40, deadline=None)
def test_tokens_are_those_of_the_whole_document_wherever_it_was_cut(texts, block):
    tokenizer = TINY
    texts = [f"{text} and{' the little fox' * 100}" for text in texts]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "BLOCK", block)
        patch.setattr(shards, "SECTION", 100)
        data = make([write(Path(folder) / "a.txt", texts)], tokenizer, Language(), folder, held_out=0)
        assert data.train.tokens.tolist() == [
            token for text in texts for token in [tokenizer.end, *tokenizer.encode(text)]
        ]
        assert len(data.train) == len(texts)


def test_one_endless_line_is_one_document(tmp_path, tokenizer):
    text = " ".join(stories(200))
    (tmp_path / "a.txt").write_text(text)
    data = make([tmp_path / "a.txt"], tokenizer, Language(), tmp_path / "cache", held_out=0)
    assert documents(data.train, tokenizer) == [text]
    (tmp_path / "b.txt").write_text("é" * 20_000)
    data = make([tmp_path / "b.txt"], tokenizer, Language(), tmp_path / "cache", held_out=0)
    assert documents(data.train, tokenizer) == ["é" * 20_000]


def test_pairs_keep_where_the_answer_begins_and_long_ones_are_counted(tmp_path, tokenizer):
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    pairs = [("the fox", "le renard"), ("fox " * 90, "renard"), ("a robot", "un robot")]
    data = make([write_pairs(tmp_path / "a.jsonl", pairs)], tokenizer, TRANSLATION, tmp_path / "cache", held_out=0)
    assert data.report.dropped == {"too long": 1}
    assert len(data.train) == 2
    for i, (source, target) in enumerate([pairs[0], pairs[2]]):
        ids, [answer] = data.train[i], data.train.example(i)["answer"]
        assert tokenizer.decode(ids[: answer - 1]) == source
        assert tokenizer.decode(ids[answer:]) == target + END
    assert data.train.arrays.keys() == {"ids", "answer"}
    assert "left out: 1 too long" in str(data.report)


def test_what_a_task_cuts_away_is_counted(tmp_path, tokenizer):
    task = Summary(room=4, limit=20)
    (tmp_path / "a.tsv").write_text(f"article\tsummary\n{'fox ' * 50}\tfox\nshort\tfox\n")
    tokenizer = tokenizer.with_specials(task.specials)
    data = make([tmp_path / "a.tsv"], tokenizer, task, tmp_path / "cache", held_out=0)
    full = len(tokenizer.encode("fox " * 49 + "fox"))
    assert (data.report.cut, data.report.cut_tokens) == (1, full - 14)


def test_classes_and_the_rows_of_a_record_are_kept(tmp_path, tokenizer):
    (tmp_path / "a.tsv").write_text("good fox\tgood\nbad fox\tbad\n")
    task = Classification(labels=("bad", "good"))
    ready = tokenizer.with_specials(task.specials)
    data = make([tmp_path / "a.tsv"], ready, task, tmp_path / "cache", held_out=0)
    assert data.train.arrays["label"].values.tolist() == [1, 0]
    assert data.train.together == 1
    (tmp_path / "b.jsonl").write_text('{"context": "a", "choices": ["b", "c", "d"], "label": 2}\n' * 2)
    task = Choice(choices=3)
    ready = tokenizer.with_specials(task.specials)
    data = make([tmp_path / "b.jsonl"], ready, task, tmp_path / "cache", held_out=0)
    assert data.train.together == 3
    assert data.train.arrays["label"].values.tolist() == [2] * 6


def test_empty_lines_of_parallel_text_are_left_out_and_counted(tmp_path, tokenizer):
    (tmp_path / "a.en").write_text("fox\n\nhill\nrobot\n")
    (tmp_path / "a.fr").write_text("renard\nrien\n \nrobot\n")
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    data = make([tmp_path / "a.en", tmp_path / "a.fr"], tokenizer, TRANSLATION, tmp_path / "cache", held_out=0)
    assert data.report.dropped == {"empty": 2}
    assert len(data.train) == 2


def test_a_vocabulary_beyond_16_bits_is_stored_in_32(tmp_path, tokenizer, monkeypatch):
    assert [pieces.Method(Language(), range(size), 100).dtype for size in (65_536, 65_537)] == ["<u2", "<u4"]
    monkeypatch.setattr(pieces.Method, "dtype", "<u4")
    data = make([write(tmp_path / "a.txt", stories(3))], tokenizer, Language(), tmp_path / "cache", held_out=0)
    assert data.train.tokens.dtype == np.uint32
    assert documents(data.train, tokenizer) == stories(3)


def test_real_parallel_text_comes_out_again(shared_data, tmp_path):
    gpt2 = Tokenizer.load("gpt2").with_specials(TRANSLATION.specials)
    paths = [shared_data / "multi30k" / f"val.{language}.gz" for language in ("en", "fr")]
    data = make(paths, gpt2, TRANSLATION.within(128), tmp_path, held_out=0.1)
    assert len(data.train) + len(data.held) + data.report.dropped.get("too long", 0) == 1014
    assert 95 <= len(data.held) <= 105
    assert gpt2.decode(data.train[0]) == (
        "A group of men are loading cotton onto a truck<|translate|>"
        "Un groupe d'hommes chargent du coton dans un camion<|endoftext|>"
    )


# whatever the number of workers


def test_the_result_does_not_depend_on_the_number_of_workers(tmp_path, tokenizer):
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.txt", stories(70, seed=ord(name)))
    (tmp_path / "d.txt").write_text(" ".join(stories(100)))
    made = [
        make([tmp_path], tokenizer, Language(), tmp_path / "cache" / f"{n}", held_out=0.1, workers=n) for n in (1, 2, 3)
    ]
    assert len(made[0].held) > 10
    assert contents(made[0]) == contents(made[1]) == contents(made[2])
    assert len({data.fingerprint for data in made}) == 1
    assert made[0].report == made[1].report


def test_a_script_without_a_main_guard_can_use_workers(tmp_path, tokenizer):
    done = in_a_script(tmp_path, tokenizer, "run(); open('ran', 'a').write('x')", workers=2)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").read_text() == "x"  # once: the workers did not run the script again


def test_workers_do_not_import_torch():
    code = (
        "import sys, cutaway.train.data.workers, cutaway.train.data.shards, cutaway.tasks, cutaway.text.tokenizer;"
        "cutaway.text.tokenizer.Tokenizer.load('gpt2').encode('x'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_progress_counts_bytes_up_to_all_of_them(tmp_path, tokenizer):
    path, heard = write(tmp_path / "a.txt", stories(100)), []
    make([path], tokenizer, Language(), tmp_path / "cache", workers=2, progress=lambda *args: heard.append(args))
    size = path.stat().st_size
    assert heard == sorted(heard)
    assert len(heard) > 5
    assert heard[-1] == (size, size)


# held out


def test_held_out_documents_are_whole_and_none_is_lost(tmp_path, tokenizer):
    texts = [*stories(300), " ".join(stories(60))]  # the last one is longer than many sections
    data = make([write(tmp_path / "a.txt", texts)], tokenizer, Language(), tmp_path / "cache", held_out=0.1)
    train, held = documents(data.train, tokenizer), documents(data.held, tokenizer)
    assert len(held) == 30
    assert [text for text in texts if text in set(train)] == train
    assert sorted(train + held) == sorted(texts)


def test_one_document_that_is_nearly_everything_is_not_held_out_whole(tmp_path, tokenizer):
    book = " ".join(stories(400))
    path = write(tmp_path / "a.txt", [*stories(20), book])
    for seed in range(8):
        data = make([path], tokenizer, Language(), tmp_path / "cache", 0.3, seed)
        assert book in documents(data.train, tokenizer)
        assert len(data.held) == 6


def test_a_number_of_documents_can_be_held_out(tmp_path, tokenizer):
    data = make([write(tmp_path / "a.txt", stories(50))], tokenizer, Language(), tmp_path / "cache", held_out=7)
    assert (len(data.train), len(data.held)) == (43, 7)


def test_the_choice_follows_contents_and_seed_and_not_the_order(tmp_path, tokenizer):
    texts = stories(200)
    one = make([write(tmp_path / "a.txt", texts)], tokenizer, Language(), tmp_path / "cache", 0.1)
    two = make([write(tmp_path / "b.txt", texts[::-1])], tokenizer, Language(), tmp_path / "cache", 0.1)
    other = make([tmp_path / "a.txt"], tokenizer, Language(), tmp_path / "cache", 0.1, seed=1)
    held = [sorted(documents(data.held, tokenizer)) for data in (one, two, other)]
    assert held[0] == held[1] != held[2]


@given(counts=st.lists(st.integers(1, 12), min_size=2, max_size=30), share=st.floats(0.01, 0.6), seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_equal_documents_are_never_divided_and_both_sides_have_some(counts, share, seed):
    tokenizer = TINY
    texts = [f"Document {i}" for i, count in enumerate(counts) for _ in range(count)]
    random.Random(seed).shuffle(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.txt", texts)
        data = make([path], tokenizer, Language(), folder, float(share), seed)
        train, held = documents(data.train, tokenizer), documents(data.held, tokenizer)
    assert train
    assert held
    assert not set(train) & set(held)
    assert sorted(train + held) == sorted(texts)
    assert len(held) <= max(1, round(share * len(texts)), min(counts))


def test_records_with_the_same_source_stay_together(tmp_path, tokenizer):
    pairs = [(f"fox {i % 50}", f"renard {i}") for i in range(200)]
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    data = make([write_pairs(tmp_path / "a.jsonl", pairs)], tokenizer, TRANSLATION, tmp_path / "cache", 0.2)
    sources = [
        {tokenizer.decode(side[i]).split("<|translate|>")[0] for i in range(len(side))}
        for side in (data.train, data.held)
    ]
    assert len(data.held) == 40
    assert not sources[0] & sources[1]


def test_of_a_few_records_one_is_held_out_and_not_always_the_shortest(tmp_path, tokenizer):
    path = write_pairs(tmp_path / "a.jsonl", [("fox " * n, "renard") for n in range(1, 13)])
    tokenizer, seen = tokenizer.with_specials(TRANSLATION.specials), set()
    for seed in range(6):
        data = make([path], tokenizer, TRANSLATION, tmp_path / "cache", seed=seed)
        assert (len(data.train), len(data.held)) == (11, 1)
        seen.add(len(data.held.tokens))
    assert len(seen) > 2


def test_both_orders_of_a_comparison_stay_together(tmp_path, tokenizer):
    task = Similarity(labels=("no", "yes"))
    tokenizer = tokenizer.with_specials(task.specials)
    (tmp_path / "a.tsv").write_text("".join(f"fox {i}\thill {i}\tyes\n" for i in range(40)))
    data = make([tmp_path / "a.tsv"], tokenizer, task, tmp_path / "cache", 0.25)
    assert (len(data.train), len(data.held)) == (60, 20)
    for i in range(0, 20, 2):
        a, b = (tokenizer.decode(data.held[k])[9:-11].split("<|delimiter|>") for k in (i, i + 1))
        assert a == b[::-1]


def test_of_a_single_long_text_sections_are_held_out_and_the_torn_ends_begin_anew(tmp_path, tokenizer):
    text = "\n".join(stories(400))
    (tmp_path / "a.txt").write_text(text)
    data = make([tmp_path / "a.txt"], tokenizer, Language(), tmp_path / "cache", held_out=0.05)
    share = data.held.bytes / len(text.encode())
    assert 0.02 < share < 0.10
    train, held = documents(data.train, tokenizer), documents(data.held, tokenizer)
    assert all(int(data.train[i][0]) == tokenizer.end for i in range(len(train)))
    assert len(train) > 2
    places = sorted((text.index(part), part) for part in train + held)
    assert "".join(part for _, part in places) == text  # nothing lost, nothing twice
    assert data.report.documents == 1


# made once


@pytest.fixture
def tokenised(monkeypatch) -> list[int]:
    """Grows by one for every block tokenised in this process."""
    count: list[int] = []
    piece = pieces.Method.piece
    monkeypatch.setattr(pieces.Method, "piece", lambda self, block: count.append(1) or piece(self, block))
    return count


def test_the_same_contents_are_not_tokenised_again(tmp_path, tokenizer, tokenised):
    path = write(tmp_path / "a.txt", stories(40))
    first = make([path], tokenizer, Language(), tmp_path / "cache")
    before = len(tokenised)
    assert before > 2
    path.touch()
    again = make([path], tokenizer, Language(), tmp_path / "cache")
    moved = make([path.rename(tmp_path / "b.txt")], tokenizer, Language(), tmp_path / "cache")
    assert len(tokenised) == before
    assert first.fingerprint == again.fingerprint == moved.fingerprint
    assert contents(first) == contents(moved)


def test_a_cache_that_can_only_be_read_serves_what_it_has(tmp_path, tokenizer, monkeypatch):
    path = write(tmp_path / "a.txt", stories(5))
    first = make([path], tokenizer, Language(), tmp_path / "cache")

    def refuse(*args, **more):
        raise OSError(30, "Read-only file system")

    path.touch()
    for name in ("write_text", "replace", "rename"):
        monkeypatch.setattr(Path, name, refuse)
    assert make([path], tokenizer, Language(), tmp_path / "cache").fingerprint == first.fingerprint
    monkeypatch.setattr(shards, "_locked", refuse)
    assert "Read-only file system" in refusal([path], tokenizer, Language(), tmp_path / "cache", seed=1)


def test_one_changed_byte_or_setting_makes_another_data_set(tmp_path, tokenizer):
    path = write(tmp_path / "a.txt", stories(40))
    stat = path.stat()
    seen = [make([path], tokenizer, Language(), tmp_path / "cache", 0.1).fingerprint]
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the same size and the same time of writing
    seen.append(make([path], tokenizer, Language(), tmp_path / "cache", 0.1).fingerprint)
    seen.append(make([path], tokenizer, Language(), tmp_path / "cache", 0.2).fingerprint)
    seen.append(make([path], tokenizer, Language(), tmp_path / "cache", 0.1, seed=1).fingerprint)
    seen.append(make([path], tokenizer.with_specials(["<|x|>"]), Language(), tmp_path / "cache", 0.1).fingerprint)
    seen.append(make([path, path], tokenizer, Language(), tmp_path / "cache", 0.1).fingerprint)
    assert len(set(seen)) == len(seen)


def test_a_setting_of_the_task_makes_another_data_set(tmp_path, tokenizer):
    path = write_pairs(tmp_path / "a.jsonl", [("fox", "renard"), ("hill", "colline")])
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    seen = {make([path], tokenizer, TRANSLATION.within(n), tmp_path / "cache").fingerprint for n in (40, 50)}
    turned = {"source": "target", "target": "source"}
    seen.add(make([path], tokenizer, TRANSLATION, tmp_path / "cache", columns=turned).fingerprint)
    assert len(seen) == 3


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path, monkeypatch):
    path, memo, read = write(tmp_path / "a.txt", stories(5)), tmp_path / "memo.json", []
    digest = digests._digest
    monkeypatch.setattr(digests, "_digest", lambda path, size: read.append(path) or digest(path, size))
    first = digests.digests([path], memo)
    assert digests.digests([path], memo) == first
    assert len(read) == 2  # it had been written just before: that is not trusted
    monkeypatch.setattr(digests, "JUST_NOW", 0)
    for _ in range(3):
        assert digests.digests([path], memo) == first
    assert len(read) == 2
    memo.write_text("{damaged")
    assert digests.digests([path], memo) == first
    stat = path.stat()
    path.write_text(path.read_text().replace("fox", "fux"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the same size, number and time of writing
    assert digests.digests([path], memo) != first


def test_a_tokenizer_loaded_from_its_folder_makes_the_same_data_set(tmp_path, tokenizer):
    path = write(tmp_path / "a.txt", stories(5))
    for number, one in enumerate([tokenizer, tokenizer.with_specials(["<|x|>"]), Tokenizer.load("gpt2")]):
        one.save(tmp_path / f"{number}")
        again = Tokenizer.load(tmp_path / f"{number}")
        made = [make([path], each, Language(), tmp_path / "cache").fingerprint for each in (one, again)]
        assert made[0] == made[1], number


def test_a_large_file_has_one_digest_however_many_segments_it_has(tmp_path, monkeypatch):
    path = tmp_path / "a"
    monkeypatch.setattr(digests, "SEGMENT", 1000)
    seen = set()
    for data in (b"x" * 2500, b"x" * 2501, b"x" * 1000 + b"y" + b"x" * 1499, b""):
        path.write_bytes(data)
        seen.add(digests.digests([path], tmp_path / "memo")[0])
    assert len(seen) == 4


# interrupted and continued

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from cutaway.tasks import Language
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.data import merge, pieces, shards, workers
shards.BLOCK = 2000
folder, workers_wanted = Path(sys.argv[1]), int(sys.argv[2])
tokenizer = Tokenizer.load(folder / "tokenizer")
def die(): os.kill(os.getpid(), signal.SIGKILL)
def after(count, owner, name, then=die):
    whole, calls = getattr(owner, name), []
    def wrapped(*args, **more):
        calls.append(1)
        if len(calls) > count: then()
        return whole(*args, **more)
    setattr(owner, name, wrapped)
def run(**more):
    cache = folder / "cache"
    return shards.prepare([folder / "data"], tokenizer, Language(), cache, 0.1, workers=workers_wanted, **more)
"""


def in_a_script(folder, tokenizer, code, workers=1, start=subprocess.run):
    if not (folder / "data").exists():
        (folder / "data").mkdir()
        write(folder / "data/a.txt", stories(120))
        write(folder / "data/b.txt", stories(60, seed=1))
        tokenizer.save(folder / "tokenizer")
    command = [sys.executable, "-c", SCRIPT + code, str(folder), str(workers)]
    pipes = {"capture_output": True} if start is subprocess.run else {"stdout": -1, "stderr": -1}
    return start(command, cwd=folder, text=True, **pipes)


KILLED_AT = {
    "the first piece": "run(progress=lambda *args: die())",
    "the third piece": "seen = []; run(progress=lambda *args: seen.append(1) or (len(seen) > 2 and die()))",
    "merging": "after(2, merge._Writer, 'add'); run()",
    "closing": "after(1, merge._Writer, 'close'); run()",
    "moving into place": "after(0, shards.Path, 'rename'); run()",
    "cleaning up": "after(1, shards.shutil, 'rmtree'); run()",
    "writing a piece": "after(3, pieces.Path, 'replace'); run()",  # with one worker: others write in their own process
}


@pytest.mark.parametrize(("moment", "count"), [(one, count) for one in KILLED_AT for count in (1, 2)][:-1])
def test_killed_at_any_point_it_goes_on_to_the_same_result(tmp_path, tokenizer, moment, count):
    killed = in_a_script(tmp_path, tokenizer, KILLED_AT[moment], count)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    data = make([tmp_path / "data"], tokenizer, Language(), tmp_path / "cache", 0.1, workers=count)
    fresh = make([tmp_path / "data"], tokenizer, Language(), tmp_path / "fresh", 0.1)
    assert contents(data) == contents(fresh)
    assert not list((tmp_path / "cache").glob("unfinished-*/*")) + list((tmp_path / "cache").glob("discarded-*"))


def test_finished_pieces_are_kept_and_damaged_ones_made_again(tmp_path, tokenizer, tokenised):
    in_a_script(tmp_path, tokenizer, KILLED_AT["merging"])
    made = sorted((tmp_path / "cache").glob("unfinished-*/*.piece"))
    assert len(made) > 8
    made[0].write_bytes(made[0].read_bytes()[:-1])
    made[1].write_bytes(b"")
    data = bytearray(made[2].read_bytes())
    data[-100] ^= 4
    made[2].write_bytes(data)
    made[3].unlink()
    data = make([tmp_path / "data"], tokenizer, Language(), tmp_path / "cache", 0.1)
    assert len(tokenised) == 4
    assert contents(data) == contents(make([tmp_path / "data"], tokenizer, Language(), tmp_path / "fresh", 0.1))


def test_a_worker_that_is_killed_is_reported_and_the_rest_is_kept(tmp_path, tokenizer):
    code = (
        "after(2, workers._Process, '_send', lambda: [os.kill(p.running.pid, 9) for p in everyone if p.running])\n"
        "everyone = []; start = workers._Process.start\n"
        "workers._Process.start = lambda self: everyone.append(self) or start(self)\n"
        "try: run()\nexcept Exception as error: print(type(error).__name__, error)"
    )
    said = in_a_script(tmp_path, tokenizer, code, workers=2).stdout
    assert "CutawayError A process that was tokenizing the data was ended by signal 9." in said
    assert "run the same command again to continue" in said
    data = make([tmp_path / "data"], tokenizer, Language(), tmp_path / "cache", 0.1)
    assert contents(data) == contents(make([tmp_path / "data"], tokenizer, Language(), tmp_path / "fresh", 0.1))


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path, tokenizer):
    code = (
        "start = workers._Process.start\n"
        "def told(self):\n"
        "    process = start(self); (folder / 'workers' / str(process.pid)).touch(); return process\n"
        "workers._Process.start = told; (folder / 'workers').mkdir()\n"
        "seen = []; run(progress=lambda *args: seen.append(1) or (len(seen) > 4 and die()))"
    )
    in_a_script(tmp_path, tokenizer, code, workers=2)
    started = [int(path.name) for path in (tmp_path / "workers").iterdir()]
    assert started
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in started):
        assert time.monotonic() < deadline, "workers are still there"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_it_without_leaving_workers_and_it_goes_on(tmp_path, tokenizer):
    code = (
        "start = workers._Process.start\n"
        "everyone = set()\n"
        "workers._Process.start = lambda self: everyone.add(self) or start(self)\n"
        "try: run(progress=lambda *args: os.kill(os.getpid(), signal.SIGINT))\n"
        "except KeyboardInterrupt: print([p.running.returncode for p in everyone])"
    )
    done = in_a_script(tmp_path, tokenizer, code, workers=2)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) <= {-9, 0}
    data = make([tmp_path / "data"], tokenizer, Language(), tmp_path / "cache", 0.1)
    assert contents(data) == contents(make([tmp_path / "data"], tokenizer, Language(), tmp_path / "fresh", 0.1))


def test_a_data_set_that_lost_bytes_is_made_again(tmp_path, tokenizer):
    path = write(tmp_path / "a.txt", stories(40))
    first = make([path], tokenizer, Language(), tmp_path / "cache")
    whole = contents(first)
    for damage in ("train.tokens", "held.offsets", "dataset.json"):
        file = first.folder / damage
        file.write_bytes(file.read_bytes()[:-2])
        assert Dataset.open(first.folder) is None
        assert contents(make([path], tokenizer, Language(), tmp_path / "cache")) == whole


def test_several_processes_at_once_make_it_once(tmp_path, tokenizer):
    code = "count = []; after(0, pieces.Method, 'piece', lambda: count.append(1)); print(run().fingerprint, len(count))"
    running = [in_a_script(tmp_path, tokenizer, code, start=subprocess.Popen) for _ in range(3)]
    said = [one.communicate() for one in running]
    assert all(one.returncode == 0 for one in running), said
    seen = [out.split() for out, _ in said]
    assert len({fingerprint for fingerprint, _ in seen}) == 1
    counts = sorted(int(count) for _, count in seen)
    assert counts[:2] == [0, 0]
    assert counts[2] > 8


def test_threads_of_one_process_can_prepare_at_once(tmp_path, tokenizer):
    path, seen = write(tmp_path / "a.txt", stories(60)), []
    threads = [
        threading.Thread(target=lambda: seen.append(make([path], tokenizer, Language(), tmp_path / "cache")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert len({data.fingerprint for data in seen}) == 1


# mistakes


@pytest.mark.parametrize("count", [1, 3])
def test_a_bad_record_is_named_and_of_several_the_first(tmp_path, tokenizer, count):
    lines = [json.dumps({"source": f"fox {i}", "target": f"renard {i}"}) for i in range(400)]
    lines[301:] = [json.dumps({"source": "fox", "target": ""})] * 99
    lines[300] = json.dumps({"source": "fox", "target": 7})
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    said = refusal([tmp_path / "a.jsonl"], tokenizer, TRANSLATION, tmp_path / "cache", workers=count)
    assert said.startswith(f"{tmp_path / 'a.jsonl'}, line 301: ")
    assert "'target' must be text" in said


def test_of_blocks_that_fail_at_the_same_time_the_first_is_reported(tmp_path, tokenizer, monkeypatch):
    together, feeding = threading.Barrier(3), dict[int, threading.Thread]()

    class Failing:
        def __init__(self, greeting):
            pass

        def piece(self, block, path):
            feeding[block.line] = threading.current_thread()
            together.wait()
            for later in (2, 3) if block.line == 1 else ():
                feeding[later].join()  # the first block's failure is the last to be heard of
            raise CutawayError(f"line {block.line}")

        def end(self):
            pass

    monkeypatch.setattr(workers, "_Process", Failing)
    blocks = [Block(Source((tmp_path / "a.txt",), "text"), (b"",), ("text",), ("text",), line) for line in (1, 2, 3)]
    method = pieces.Method(Language(), tokenizer, 100)
    with pytest.raises(CutawayError, match="line 1"):
        list(workers.work(iter(blocks), lambda block: f"{block.line}", method, tmp_path, 3))


def test_after_a_bad_record_is_mended_what_was_finished_is_kept(tmp_path, tokenizer, tokenised):
    path = write(tmp_path / "a.txt", stories(200))
    good = path.read_bytes()
    path.write_bytes(good[:-30] + b"\xff" + good[-29:])
    assert "0xff" in refusal([path], tokenizer, Language(), tmp_path / "cache")
    blocks = len(tokenised)
    path.write_bytes(good)
    make([path], tokenizer, Language(), tmp_path / "cache")
    assert blocks > 8
    assert len(tokenised) == blocks + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There is nothing in"),
        (" \n\n", "There is nothing in"),
        (f"{END}\n{END}\n", "There is nothing in"),
        ("One line only.", "There is only one document, and one of them should be held out"),
        (f"Same.\n{END}\n" * 5, "All documents are alike"),
    ],
)
def test_too_little_data_is_explained(tmp_path, tokenizer, text, message):
    (tmp_path / "a.txt").write_text(text)
    said = refusal([tmp_path / "a.txt"], tokenizer, Language(), tmp_path / "cache")
    assert message in said
    assert "give" in said.lower()
    if "held out" in message:
        assert len(make([tmp_path / "a.txt"], tokenizer, Language(), tmp_path / "cache", held_out=0).train) == 1


def test_when_every_record_is_left_out_the_reasons_are_told(tmp_path, tokenizer):
    path = write_pairs(tmp_path / "a.jsonl", [("fox " * 99, "renard")] * 3)
    tokenizer = tokenizer.with_specials(TRANSLATION.specials)
    assert "can be used: 3 too long" in refusal([path], tokenizer, TRANSLATION, tmp_path / "cache")


@pytest.mark.parametrize("share", [-0.1, 1.0, True, -3])
def test_a_share_that_is_none_is_refused(tmp_path, tokenizer, share):
    assert "held_out is a share" in refusal([write(tmp_path / "a.txt", ["x"])], tokenizer, Language(), tmp_path, share)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, tokenizer):
    (tmp_path / "file").write_text("in the way")
    said = refusal([write(tmp_path / "a.txt", stories(5))], tokenizer, Language(), tmp_path / "file" / "cache")
    assert str(tmp_path / "file" / "cache") in said
    assert "Put the cache elsewhere" in said


@pytest.mark.parametrize("count", [1, 2])
def test_a_full_disk_is_reported_and_what_was_finished_is_kept(tmp_path, tokenizer, count):
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    code = (
        "import subprocess\n"
        "(folder / 'cache').mkdir()\n"
        "mount = lambda how: subprocess.run(['mount', '-ttmpfs', '-o', how, 'none', folder / 'cache'], check=True)\n"
        "mount('size=64k')\n"
        "try: run()\nexcept Exception as error: print(type(error).__name__, error)\n"
        "print(len(list((folder / 'cache').glob('unfinished-*/*.piece'))) > 0)\n"
        "mount('remount,size=10m')\n"
        "print(run().fingerprint)"
    )

    def start(command, **more):
        return subprocess.run([unshare, "-rm", *command], capture_output=True, **{k: more[k] for k in ("cwd", "text")})

    done = in_a_script(tmp_path, tokenizer, code, count, start)
    said = done.stdout.splitlines()
    assert len(said) == 3, done.stderr
    assert said[0].startswith("CutawayError The tokens cannot be written to")
    assert "No space left on device. Make room on that disk" in said[0]
    assert said[1] == "True"
    assert said[2] == make([tmp_path / "data"], tokenizer, Language(), tmp_path / "fresh", 0.1).fingerprint


def test_data_that_changes_while_it_is_read_is_reported(tmp_path, tokenizer):
    path = write(tmp_path / "a.txt", stories(100))

    def meddle(done, total):
        path.write_text(path.read_text() + "more")

    said = refusal([path], tokenizer, Language(), tmp_path / "cache", workers=1, progress=meddle)
    assert "changed while it was being read" in said
    data = make([path], tokenizer, Language(), tmp_path / "cache")
    assert documents(data.train, tokenizer)[-1].endswith("more") or documents(data.held, tokenizer)[-1].endswith("more")


def test_reading_takes_little_memory_however_long_a_line_is(tmp_path):
    with (tmp_path / "a.txt").open("wb") as file:
        for _ in range(120):
            file.write(b"word " * (1 << 18))
    code = (
        "import resource, sys\n"
        "from cutaway.train.data.records import blocks\nfrom cutaway.train.data.sources import find\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nbefore = peak()\n"
        "size = sum(len(b.data[0]) for b in blocks(find([sys.argv[1]], ['text']).read[0], ['text']))\n"
        "print(size, peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.txt")], capture_output=True, text=True)
    size, kilobytes = map(int, done.stdout.split())
    assert size == 120 * 5 * (1 << 18)
    assert kilobytes < 40_000
