"""One declaration of settings: flags before the environment, the environment before the file."""

from __future__ import annotations

from dataclasses import fields

import pytest

from cutaway.cli.reader import parameters_of
from cutaway.cli.serve import serve
from cutaway.errors import CutawayError
from cutaway.serve.configuration import helps, read_settings
from cutaway.serve.settings import ServeSettings


def test_every_setting_is_a_flag_with_a_help_of_its_own():
    flags = {one.name: one for one in parameters_of(serve)}
    assert flags.keys() == {"config", *(one.name for one in fields(ServeSettings))}
    assert helps().keys() == {one.name for one in fields(ServeSettings)}
    assert flags["receive_seconds"].info.names == ("--receive-seconds",)


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(
        'port = 1\nhost = "::1"\nrows = 3\nmemory = "2GiB"\nmodels = ["a", "b"]\nrequire_keys = true\ngrace = 4\n'
    )
    environment = {"CUTAWAY_SERVE_PORT": "2", "CUTAWAY_SERVE_ROWS": "5", "CUTAWAY_SERVE_BODY": "1.5MiB", "OTHER": "x",
                   "CUTAWAY_SERVE_ORIGINS": "https://a.example, https://b.example"}  # fmt: skip
    found = read_settings({"port": 0, "models": None, "seconds": None, "log_prompts": False}, str(file), environment)
    assert (found.port, found.rows, found.host, found.memory, found.models) == (0, 5, "::1", 2 << 30, ("a", "b"))
    assert found.body == 3 << 19 and found.require_keys and found.grace == 4.0 and not found.log_prompts
    assert found.origins == ("https://a.example", "https://b.example") and found.state
    assert read_settings({}, None, environment | {"CUTAWAY_SERVE_CONFIG": str(file)}).host == "::1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "Did you mean 'port'"),
        ('port = "x"', "port must be a whole number"),
        ("port = true", "port must be a whole number"),
        ("models = [1]", "models must be a list of texts"),
        ('memory = "much"', "a size like 4GiB"),
        ("require_keys = 1", "require_keys must be true or false"),
        ("rows = 0", "rows must be 1 or more"),
        ("seconds = nan", "seconds must be more than 0"),
        ('log = "loud"', "log must be one of json, text, off"),
        ("port =", "not valid TOML"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, text, said):
    (tmp_path / "serve.toml").write_text(text)
    with pytest.raises(CutawayError, match=said):
        read_settings({}, str(tmp_path / "serve.toml"), {})


def test_a_wrong_variable_is_named():
    with pytest.raises(CutawayError, match="CUTAWAY_SERVE_PROT"):
        read_settings({}, None, {"CUTAWAY_SERVE_PROT": "1"})
    with pytest.raises(CutawayError, match="CUTAWAY_SERVE_LOG_PROMPTS must be true or false"):
        read_settings({}, None, {"CUTAWAY_SERVE_LOG_PROMPTS": "maybe"})
