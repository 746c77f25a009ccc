"""What a pull brings, from which commit, and what it refuses; the hub is a stand-in (conftest.py)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutaway.checkpoint.hub import PINNED, Pin, find_model, pull
from cutaway.errors import CutawayError

pytestmark = pytest.mark.usefixtures("machine")


# --- what a pull gives ----------------------------------------------------------------------------------------------


def test_a_pull_brings_the_files_a_gpt2_needs_bit_for_bit_and_no_others(there):
    commit = there.add("ada/tiny")
    folder = pull("ada/tiny")
    assert folder == there.home("ada/tiny") / commit
    assert there.contents(folder) == there.fetched
    assert not list(folder.parent.glob("*.incoming"))


def test_the_source_file_says_what_came_from_where(there):
    commit = there.add("ada/tiny")
    source = json.loads((pull("ada/tiny") / "cutaway-source.json").read_text())
    assert source["name"] == "ada/tiny"
    assert source["revision"] == commit
    assert source["date"].startswith("20")
    assert source["files"].keys() == there.fetched.keys()
    assert source["files"]["config.json"]["sha256"] == hashlib.sha256(there.model["config.json"]).hexdigest()
    assert source["files"]["model.safetensors"] == {
        "bytes": len(there.weights),
        "sha256": hashlib.sha256(there.weights).hexdigest(),
    }


def test_progress_counts_each_file_from_nothing_to_all_of_it(there):
    there.add("ada/tiny")
    seen: list[tuple[str, int, int]] = []
    pull("ada/tiny", progress=lambda *step: seen.append(step))
    weights = [(done, total) for file, done, total in seen if file == "model.safetensors"]
    assert weights[0] == (0, len(there.weights))
    assert weights[-1] == (len(there.weights), len(there.weights))
    assert [done for done, _ in weights] == sorted(done for done, _ in weights)
    assert {file for file, done, total in seen if done == total} == there.fetched.keys()


@pytest.mark.parametrize("kind", ["model.safetensors", "pytorch_model.bin"])
def test_sharded_weights_come_whole_with_their_index(there, kind):
    stem, _, ending = kind.rpartition(".")
    shards = {f"{stem}-0000{i}-of-00002.{ending}": there.weights[i:] for i in (1, 2)}
    files = {"config.json": b"{}", f"{kind}.index.json": b'{"weight_map": {}}', **shards}
    there.add("ada/sharded", files)
    assert there.contents(pull("ada/sharded")) == files


def test_the_old_pickle_comes_only_where_there_is_no_safetensors(there):
    there.add("ada/old", {"config.json": b"{}", "pytorch_model.bin": there.weights})
    assert there.contents(pull("ada/old")).keys() == {"config.json", "pytorch_model.bin"}


def test_a_folder_transformers_wrote_loads_after_a_pull_with_the_same_weights(there, tmp_path):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    model.save_pretrained(tmp_path / "written", max_shard_size="20KB")
    written = {path.name: path.read_bytes() for path in (tmp_path / "written").iterdir()}
    assert len(written) > 4  # sharded
    there.add("ada/written", written)
    folder = pull("ada/written")
    assert there.contents(folder) == written
    for name, weight in GPT2LMHeadModel.from_pretrained(folder).state_dict().items():
        assert torch.equal(weight, model.state_dict()[name])


def test_importing_the_hub_does_not_import_torch():
    check = "import sys, cutaway.checkpoint.hub; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


# --- revisions, and being offline -----------------------------------------------------------------------------------


def test_the_four_sizes_are_pinned_to_a_commit_of_openai_communitys_models():
    assert list(PINNED) == ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    for name, pin in PINNED.items():
        assert pin.name == f"openai-community/{name}"
        assert len(pin.revision) == 40
        assert pin.weights is None or len(pin.weights) == 64


@pytest.fixture
def pinned(there, monkeypatch):
    """`gpt2` pinned to a commit of the stand-in that is no longer its main."""
    commit = there.add("openai-community/gpt2")
    there.add("openai-community/gpt2", there.model | {"config.json": b'{"model_type": "gpt2", "newer": true}'})
    monkeypatch.setitem(PINNED, "gpt2", Pin("openai-community/gpt2", commit, hashlib.sha256(there.weights).hexdigest()))
    return commit


@pytest.mark.parametrize("name", ["gpt2", "openai-community/gpt2"])
def test_a_pinned_name_gives_its_commit_and_not_main(there, pinned, name):
    folder = pull(name)
    assert folder.name == pinned
    assert (folder / "config.json").read_bytes() == there.model["config.json"]


def test_after_a_pull_of_a_pinned_name_no_network_is_needed(there, pinned):
    folder = pull("gpt2")
    there.asked.clear()
    there.stop()
    assert pull("gpt2") == find_model("gpt2") == find_model("openai-community/gpt2", pinned) == folder
    assert there.asked == []


def test_our_own_checksum_of_pinned_weights_counts_for_more_than_the_hubs(pinned, monkeypatch):
    monkeypatch.setitem(PINNED, "gpt2", Pin("openai-community/gpt2", pinned, "0" * 64))
    with pytest.raises(CutawayError, match="wrong checksum"):
        pull("gpt2")
    assert find_model("gpt2") is None


def test_without_a_revision_what_is_here_stays_and_main_is_asked_for_by_name(there):
    old = there.add("ada/tiny")
    assert pull("ada/tiny").name == old
    new = there.add("ada/tiny", there.model | {"README.md": b"better"})
    there.asked.clear()
    assert pull("ada/tiny").name == old
    assert there.asked == []
    assert pull("ada/tiny", "main").name == new
    assert pull("ada/tiny").name == new  # main, as last fetched
    assert pull("ada/tiny", old).name == old


def test_a_branch_whose_name_holds_a_slash_is_one_revision(there):
    commit = there.add("ada/tiny", branch="refs/pr/1")
    assert pull("ada/tiny", "refs/pr/1").name == commit
    assert find_model("ada/tiny", "refs/pr/1").name == commit
    assert find_model("ada/tiny", "main") is None


@pytest.mark.parametrize("switch", ["CUTAWAY_OFFLINE", "HF_HUB_OFFLINE"])
def test_the_offline_switch_uses_what_is_here_and_asks_nothing(there, monkeypatch, switch):
    there.add("ada/tiny")
    folder = pull("ada/tiny", "main")
    there.asked.clear()
    monkeypatch.setenv(switch, "1")
    assert pull("ada/tiny") == pull("ada/tiny", "main") == folder
    with pytest.raises(CutawayError, match=f"ada/other is not on this machine, and {switch} .*: ada/tiny"):
        pull("ada/other")
    assert there.asked == []


def test_no_network_says_so_and_names_the_models_that_are_here(there):
    there.add("ada/tiny")
    pull("ada/tiny")
    there.stop()
    with pytest.raises(CutawayError, match=r"Could not reach 127\.0\.0\.1:\d+: .*machine: ada/tiny\."):
        pull("ada/other")


def test_a_hub_that_offers_another_commit_than_the_one_asked_for_is_refused(there, tmp_path):
    commit = there.add("ada/tiny")
    there.listed["sha"] = "f" * 40
    with pytest.raises(CutawayError, match="offered 'ffff"):
        pull("ada/tiny", commit)
    assert not (tmp_path / "store").exists()


# --- what the hub will not give, and what we will not take -----------------------------------------------------------


def test_an_unknown_model_is_said_with_the_nearest_name(there):
    with pytest.raises(CutawayError, match=r"No model called openai/gpt2-xll on 127.* set HF_TOKEN\).* 'gpt2-xl'\?"):
        pull("openai/gpt2-xll")


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_private_model_is_said_to_need_a_token(there, code):
    there.add("ada/tiny")
    there.faults["listing"] = [f"status {code}"]
    with pytest.raises(CutawayError, match=r"No model called ada/tiny on .*private: set HF_TOKEN"):
        pull("ada/tiny")


def test_an_unknown_revision_is_said(there):
    there.add("ada/tiny")
    with pytest.raises(CutawayError, match=r"ada/tiny on .* has no revision 'v2'"):
        pull("ada/tiny", "v2")


def test_a_gated_model_is_said_with_where_to_accept_its_terms(there):
    there.add("ada/tiny")
    there.faults["config.json"] = ["status 403 GatedRepo"]
    with pytest.raises(
        CutawayError, match=rf"ada/tiny is gated: accept its terms at {there.address}/ada/tiny, .*HF_TOKEN"
    ):
        pull("ada/tiny")


def test_the_token_is_shown_to_the_hub_and_to_no_other_server(there, monkeypatch):
    there.add("ada/tiny")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    pull("ada/tiny")
    assert {token for kind, _, _, token in there.asked if kind == "hub"} == {"Bearer hf_secret"}
    assert {token for kind, _, _, token in there.asked if kind == "cdn"} == {None}
    assert there.asked_for("model.safetensors") == [None]


@pytest.mark.parametrize("file", ["../evil.json", "a/../../evil", "/etc/passwd", "..\\evil", "C:evil", ".."])
def test_a_listing_with_a_file_outside_the_folder_is_refused_whole(there, tmp_path, file):
    there.add("ada/tiny", there.model | {file: b"evil"})
    with pytest.raises(CutawayError, match="outside its folder: not downloaded"):
        pull("ada/tiny")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"siblings": None},
        {"siblings": [7]},
        {"siblings": [{}]},
        {"sha": "main"},
        {"sha": "../../x"},
        {"siblings": [{"rfilename": "config.json"}, {"rfilename": "model.safetensors"}]},
        {"siblings": [{"rfilename": f, "size": -1, "blobId": "0" * 40} for f in ("config.json", "model.safetensors")]},
        {"siblings": [{"rfilename": "config.json", "size": 1, "blobId": "0" * 40}]},
        {"siblings": [{"rfilename": "model.safetensors", "size": 1, "lfs": {"size": 1, "sha256": "0" * 64}}]},
        {"siblings": [{"rfilename": f, "size": 1, "lfs": {"sha256": 3}} for f in ("config.json", "model.safetensors")]},
    ],
)
def test_a_listing_that_makes_no_sense_is_refused_before_anything_is_fetched(there, tmp_path, change):
    there.add("ada/tiny")
    there.listed = change
    with pytest.raises(CutawayError):
        pull("ada/tiny")
    assert not (tmp_path / "store").exists()


def test_a_model_with_a_shard_missing_is_refused(there):
    files = {"config.json": b"{}", "model.safetensors.index.json": b"{}", "model-00001-of-00002.safetensors": b"half"}
    there.add("ada/half", files)
    with pytest.raises(CutawayError, match=r"has no whole model\.safetensors"):
        pull("ada/half")


@pytest.mark.parametrize("address", ["ftp://hub", "file:///etc", "hub.example", "https://"])
def test_an_endpoint_that_is_no_web_address_is_refused(monkeypatch, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(CutawayError, match="HF_ENDPOINT"):
        pull("ada/tiny")


def test_a_page_that_is_no_hub_is_told_apart_from_one(there):
    there.add("ada/tiny")
    there.listing = lambda name, commit: "<html>Sign in to the airport's wifi</html>"
    with pytest.raises(CutawayError, match="did not answer as a model hub does: check HF_ENDPOINT"):
        pull("ada/tiny")


def test_a_token_no_header_can_carry_is_said(there, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_a\r\nHost: evil")
    with pytest.raises(CutawayError, match="HF_TOKEN holds characters"):
        pull("ada/tiny")
    assert there.asked == []


@pytest.mark.parametrize("elsewhere", ["file:///etc/passwd#", "ftp://127.0.0.1:1", "data:,x"])
def test_a_redirect_away_from_the_web_is_not_followed(there, elsewhere):
    there.add("ada/tiny")
    there.cdn = elsewhere
    with pytest.raises(CutawayError, match=r"not a web address|is not allowed"):
        pull("ada/tiny")


def test_a_certificate_that_does_not_hold_is_said_at_once(monkeypatch, machine):
    bad = ssl.SSLCertVerificationError(1, "certificate verify failed")
    bad.verify_message = "self-signed certificate"

    def refuse(*_, **__):
        raise urllib.error.URLError(bad)

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", refuse)
    with pytest.raises(CutawayError, match=r"certificate of huggingface\.co is not valid: self-signed .*SSL_CERT_FILE"):
        pull("ada/tiny")
    assert machine == []


def test_the_proxy_of_the_environment_is_used(there, monkeypatch):
    there.add("ada/tiny")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("http_proxy", there.address)
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # where the large files are
    assert there.contents(pull("ada/tiny")).keys() == there.fetched.keys()


BAD_NAMES = ["", "a b", "a/b/c", "/a", "a/", "../a", "a/..", ".", "a--b/c", "-a", "a?b", "a#b", "a%2e", "ä/b", "a\nb"]


@pytest.mark.parametrize("name", [*BAD_NAMES, "x" * 97, "./gpt2", "C:\\gpt2", "a/b\n"])
def test_what_cannot_be_a_name_is_refused_before_any_request(there, name):
    for act in (pull, find_model):
        with pytest.raises(CutawayError, match="is not the name of a model on the hub"):
            act(name)
    assert there.asked == []


@pytest.mark.parametrize("revision", ["", "..", "a/../b", "/a", "a b", "a?b", "-x", "a\n", "%2e%2e"])
def test_what_cannot_be_a_revision_is_refused_before_any_request(there, revision):
    for act in (pull, find_model):
        with pytest.raises(CutawayError, match="is not a revision"):
            act("ada/tiny", revision)
    assert there.asked == []


@given(st.text(max_size=30), st.none() | st.text(max_size=30))
@example("../..", None)
def test_find_gives_nothing_or_an_error_of_ours_for_any_text(name, revision):
    with contextlib.suppress(CutawayError):
        assert find_model(name, revision) is None
