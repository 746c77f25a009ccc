"""`cutaway explore --export`: the explorer as files that any file server can serve."""

from __future__ import annotations

from pathlib import Path

from cutaway.cli import options, screen

STAGES = {"weights": "Writing the weights", "recording": "Asking what only Python can answer"}


def write_site(
    text: str,
    folder: Path,
    moments: list[str],
    model: str,
    device: str | None,
    dtype: str | None,
    tokenizer: str | None,
) -> None:
    """Write the explorer as files, with the model in the page."""
    from cutaway.serve import start

    start.require()
    from cutaway.serve.site import check_folder, export_site, read_moments

    check_folder(folder)  # before anything takes its time
    shown = read_moments(moments)
    lm = options.load(model, device, dtype, tokenizer=tokenizer)
    name = Path(model).resolve().name if Path(model).exists() else model
    site = export_site(lm, folder, text, shown, name, lambda what: screen.aside(f"{STAGES[what]} ..."))
    screen.show(
        f"{folder} holds the explorer with {name}: {site.bytes / 1e6:.1f} MB, of which {site.weights / 1e6:.1f} MB are "
        f"weights; {site.recorded:,} answers are recorded."
    )
    screen.show(f"Any file server will do: python3 -m http.server --directory {folder}", style="dim")
