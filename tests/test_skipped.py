"""What the tests say of themselves at the end."""

from pathlib import Path
from types import SimpleNamespace

from cutaway import processor


def test_one_line_says_what_was_skipped_and_how_to_have_it(request):
    here = str(Path(__file__).with_name("conftest.py"))
    [ours] = [one for one in request.config.pluginmanager.get_plugins() if getattr(one, "__file__", None) == here]

    def summary(*reasons: str) -> list[str]:
        lines: list[str] = []
        skipped = [SimpleNamespace(longrepr=("file", 1, f"Skipped: {reason}")) for reason in reasons]
        ours.pytest_terminal_summary(SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append))
        return lines

    assert summary() == []
    [line] = summary("no Chromium (apt install chromium)", "no Chromium (apt install chromium)", "no lm-eval")
    assert line.startswith("3 skipped: 2 x no Chromium (apt install chromium); 1 x no lm-eval. `make complete`")
    assert summary(ours.OTHER_PROCESSOR) == []


def test_the_ci_runs_as_every_kind_of_processor():
    script = (Path(__file__).parents[1] / ".ci" / "run").read_text()
    assert f"processors=({' '.join(processor.KINDS)})\n" in script and "CUTAWAY_PROCESSOR={} " in script
