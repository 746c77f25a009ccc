"""`cutaway explore`: the explorer in the browser, or with --terminal the one that needs none.

In the terminal: type a text, see the ten likeliest next tokens, pick one, and go on. Plain lines in and out, so that it
works in any terminal and through a pipe. A line is one of three things: a number picks, a colon commands, and anything
else is text.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import options, screen
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import UNLIMITED, context_of

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

SHOWN = 10
HELP = "Enter likeliest · 3 pick · words add · :s sample · :u undo · :? all · :q quit"
ALL_HELP = """\
Enter   take the likeliest            :s       let chance choose
3       take the third                :g 20    go on by chance for 20 tokens
words   add words, after a space      :k 5     choose among 5 only (0: all)
+s      add exactly what follows +    :t 0.7   below 1 surer, above 1 wilder
:u      undo                          :new     begin again
:?      this help                     :q       quit"""
COMMANDS = {
    "s": "sample", "g": "go", "u": "undo", "k": "top-k", "t": "temperature", "new": "new", "n": "new", "q": "quit",
    "?": "help", "h": "help",
}  # fmt: skip
CLINGS = tuple(".,;:!?)]}'’”%…")
"""What stands right after the word before it, without a space."""


def explore(
    text: Annotated[str, options.argument(metavar="TEXT", help="The text to start with.", show_default=False)] = "",
    terminal: Annotated[
        bool, options.option("--terminal", help="Explore in the terminal instead of the browser.")
    ] = False,
    no_browser: Annotated[
        bool, options.option("--no-browser", help="Only print the address; do not open a browser.")
    ] = False,
    port: Annotated[
        int, options.option("--port", value="N", help="Serve on this port. [dim]\\[default: any free port][/]")
    ] = 0,
    export: Annotated[
        Path | None,
        options.option("--export", value="FOLDER", help="Write a static site instead: the model runs in the page."),
    ] = None,
    moment: Annotated[
        list[str] | None,
        options.option("--moment", value="LINK", help="--export: show this link, or those in a file; repeatable."),
    ] = None,
    tour: Annotated[
        Path | None, options.option("--tour", value="FILE", help="Show a tour of your own: cutaway tour new FILE.")
    ] = None,
    remote: Annotated[
        bool,
        options.option("--remote", help="Let a phone in your network be the remote control of a presentation."),
    ] = False,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    seed: options.Seed = None,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Open the explorer in the browser: every number of the model, on your own text.

    It runs on this machine only, needs no network, and ends with Ctrl-C. (With --remote a second port is open to
    the network. It answers the remote control of a presentation, by a secret link, and nothing else.)

    With --terminal (or --json): a number picks a token, Enter takes the most likely one, other text is
    added, and a colon starts a command; :? lists them.

    With --export nothing is opened: FOLDER then holds a site that any file server can serve, without Python.

    Example: cutaway explore "Once upon a time"

    Example: cutaway explore --export site --moment "Who is it? #/attention?text=Tom+lost+his+ball.&layer=3"
    """
    begun = options.decode(*options.read_bytes(text, None))
    if export is not None:
        if terminal or as_json or port or no_browser:
            raise CutawayError(
                "--export writes files and opens nothing: leave --terminal, --json, --port and --no-browser out."
            )
        from cutaway.cli.explore_site import write_site

        write_site(begun, export, moment or [], model, device, dtype, tokenizer)
        return
    if moment:
        raise CutawayError("--moment is for a site: name the folder to write it to with --export.")
    if not (terminal or as_json):
        if seed is not None:
            raise CutawayError("The page draws its own random numbers: --seed works only with --terminal.")
        in_browser(begun, model, port, not no_browser, device, dtype, tokenizer, tour, remote)
        return
    if tour or remote:
        raise CutawayError("A tour is shown in the browser: --tour and --remote do not go with --terminal.")
    lm = options.load(model, device, dtype, tokenizer=tokenizer)
    settings = lm.settings(options.given_settings(temperature, top_k), None)  # refuses what cannot be
    explorer = Explorer(lm, seed, State((), settings.temperature, settings.top_k))
    explorer.add(lm.tokenizer.encode(begun))
    explorer.past.clear()
    (run_json if as_json else run_in_terminal)(explorer)


def in_browser(
    text: str,
    model: str,
    port: int,
    show: bool,
    device: str | None,
    dtype: str | None,
    tokenizer: str | None = None,
    tour: Path | None = None,
    remote: bool = False,
) -> None:
    """Serve the page until Ctrl-C; the model wakes while the browser opens."""
    from cutaway.serve import start

    start.require()
    start.share_the_cores()
    from cutaway.serve.explorer import Explorer as Server
    from cutaway.serve.tour import TourFile
    from cutaway.tasks import Performances, load_task

    given = TourFile(tour) if tour else None
    first = ""
    if given:
        first = given.get()["steps"][0]["name"]  # says what is wrong with the file before anything is opened
        model = given.get()["model"] or model if model == "builtin" else model

    task = load_task(options.locate(model))
    page = "tasks" if task.outputs else "piano" if isinstance(task, Performances) else "predict"
    name = str(Path(model).resolve()) if Path(model).exists() else model
    server = Server(
        [name] if Path(model).exists() else [], device, dtype, {name: tokenizer} if tokenizer else {}, given
    )
    listener = start.bind(port)
    door = start.bind(host="0.0.0.0") if remote else None
    address = start.address(listener, name, text, page, first)

    def ready() -> None:
        server.models.wake(name if page == "predict" else "builtin")  # a classifier and a pianist read no such text
        screen.show(f"The explorer is at {address}")
        if door:
            screen.show(
                f"A phone can be the remote control, on port {door.getsockname()[1]}: press Present, then Remote.",
                style="dim",
            )
        if show and start.has_screen():
            start.open_browser(address)
            screen.show("It opens in your browser; press Ctrl-C to stop.", style="dim")
        elif show:
            screen.show("No browser can be opened here: open this address yourself.", style="dim")
            screen.show("From another machine, through ssh:", style="dim")
            screen.show(f"  ssh -L {listener.getsockname()[1]}:127.0.0.1:{listener.getsockname()[1]} THIS_MACHINE")

    with suppress(KeyboardInterrupt):
        start.run(server, listener, ready, door)


@dataclass(frozen=True)
class State:
    """One moment: the tokens so far and how the next is chosen."""

    ids: tuple[int, ...] = ()
    temperature: float = 1.0
    top_k: int | None = 40


@dataclass(frozen=True)
class Candidate:
    id: int
    token: bytes
    probability: float


@dataclass
class Explorer:
    """The text so far, what may come next, and every step back. Knows nothing of the screen."""

    lm: LanguageModel
    seed: int | None = None
    now: State = field(default_factory=State)
    past: list[State] = field(default_factory=list)
    message: str = ""
    done: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.show_piece: Callable[[str], None] = lambda piece: None
        self._known: tuple[tuple[int, ...], Any] | None = None

    @property
    def context(self) -> int:
        return context_of(self.lm.config)

    @property
    def text(self) -> str:
        return self.lm.shown(self.now.ids)

    @property
    def tokens(self) -> list[bytes]:
        return [self.lm.tokenizer.token_bytes(token) for token in self.now.ids]

    @property
    def among(self) -> int:
        """How many tokens the next one is chosen among."""
        known = len(self.lm.tokenizer)
        return 1 if self.now.temperature == 0 else min(self.now.top_k or known, known)

    def chances(self) -> Any:
        """The distribution the next token is drawn from, with the temperature and top-k of now. [vocabulary]"""
        from cutaway.decoding.sampling import Sampling, probabilities

        if self._known is None or self._known[0] != self.now.ids:
            self._known = (self.now.ids, self.lm.next_scores(self.now.ids))
        sampling = Sampling(temperature=self.now.temperature, top_k=self.now.top_k)
        return probabilities(self._known[1][: len(self.lm.tokenizer)], sampling)

    def candidates(self) -> list[Candidate]:
        from cutaway.decoding.sampling import likeliest

        chances = self.chances()
        best = likeliest(chances, min(SHOWN, self.among))
        return [
            Candidate(token, self.lm.tokenizer.token_bytes(token), chance)
            for token, chance in zip(best.tolist(), chances[best].tolist(), strict=True)
        ]

    def take(self, line: str) -> None:
        """Do what the line says; `message` tells what could not be done."""
        self.message = ""
        try:
            words = line.strip()
            if not words:
                self.add([self.candidates()[0].id])
            elif words.isascii() and words.isdigit():
                self.pick(int(words))
            elif words.startswith(":"):
                name, _, value = words[1:].partition(" ")
                self.command(name.lower(), value.strip())
            elif line.startswith("+"):
                self.add(self.lm.tokenizer.encode(line[1:]))
            else:
                self.add(self.lm.tokenizer.encode(self.space_before(words) + words))
        except CutawayError as error:
            self.message = str(error)

    def space_before(self, words: str) -> str:
        """A space, where a word would run into the one before it."""
        text = self.text
        return "" if not text or text[-1].isspace() or words.startswith(CLINGS) else " "

    def pick(self, number: int) -> None:
        found = self.candidates()
        if not 1 <= number <= len(found):
            raise CutawayError(f"There is no number {number} in the list. To add it as text: + {number}")
        self.add([found[number - 1].id])

    def add(self, ids: list[int]) -> None:
        if len(self.now.ids) + len(ids) > self.context:
            raise CutawayError(
                f"This model's context of {self.context:,} tokens is full. Go back with :u, or start over with :new."
            )
        if ids:
            self.become(ids=(*self.now.ids, *ids))

    def become(self, **changes: Any) -> None:
        self.past.append(self.now)
        self.now = replace(self.now, **changes)

    def command(self, name: str, value: str) -> None:
        name = COMMANDS.get(name, name)
        if name == "sample":
            weights = self.chances().tolist()
            self.add(self.random.choices(range(len(weights)), weights))
        elif name == "go":
            self.go_on(whole(value or "20", ":g"))
        elif name == "undo":
            if not self.past:
                raise CutawayError("There is nothing to undo.")
            self.now = self.past.pop()
        elif name == "top-k":
            self.become(top_k=whole(value, ":k") or None)
        elif name == "temperature":
            self.become(temperature=not_below_zero(value))
        elif name == "new":
            self.become(ids=())
        elif name == "quit":
            self.done = True
        elif name == "help":
            self.message = ALL_HELP
        else:
            near = nearest(name, [*COMMANDS, *COMMANDS.values()])
            raise CutawayError(
                f"There is no command :{name}.{near} For a list of commands: :? To add it as text: +:{name}"
            )

    def go_on(self, count: int) -> None:
        stream = self.lm.stream(
            list(self.now.ids),
            max_tokens=count,
            temperature=self.now.temperature,
            top_k=self.now.top_k,
            seed=self.random.getrandbits(32),
        )
        with suppress(KeyboardInterrupt):  # enough: what there is stays
            for piece in stream:
                self.show_piece(piece)
        self.show_piece("\n\n")
        if stream.result.ids:
            self.become(ids=(*self.now.ids, *stream.result.ids))
        if len(stream.result.ids) < count:
            self.message = stream.result.explanation


def whole(value: str, command: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise CutawayError(f"{command} takes a whole number, like {command} 20, not {value!r}.")
    return int(value)


def not_below_zero(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise CutawayError(f"The temperature must be 0 (always the most likely) or above, like :t 0.7, not {value!r}.")
    return number


def run_in_terminal(explorer: Explorer) -> None:
    """Draw, ask, do; until :q or the end of the input."""
    clear = screen.out().is_terminal and not screen.out().is_dumb_terminal and screen.interactive()
    explorer.show_piece = screen.put
    try:
        with screen.out().screen(hide_cursor=False) if clear else nullcontext():
            while not explorer.done:
                if clear:
                    screen.out().clear()
                draw(explorer)
                line = screen.ask("> ")
                if line is None:
                    break
                if not screen.interactive():
                    screen.show(f"> {line}\n")
                explorer.take(line)
    finally:
        if clear:  # the screen is given back as it was; what was written stays
            screen.put(explorer.text + "\n")


def draw(explorer: Explorer) -> None:
    now, found = explorer.now, explorer.candidates()
    if now.ids:
        screen.show(screen.chips(explorer.tokens, lines=max(3, screen.out().height - SHOWN - 9)))
    else:
        screen.show("Type the beginning of a text, or choose a first token:", style="dim")
    screen.show()
    rows = [screen.Row(screen.visible(one.token), one.probability) for one in found]
    others = explorer.among - len(found)
    if others:
        rest = max(0.0, 1 - sum(one.probability for one in found))
        rows.append(screen.Row(f"{others:,} others", rest, "dim"))
    screen.show(screen.bars(rows))
    screen.show()
    top_k = f"top-k {now.top_k:,}" if now.top_k else "the whole vocabulary"
    limited = "" if explorer.context == UNLIMITED else f" of {explorer.context:,}"
    count = f"{len(now.ids):,}{limited} tokens"
    full = ": the text is full" if len(now.ids) == explorer.context else ""
    screen.show(f"temperature {now.temperature:g} · {top_k} · {count}{full}", style="dim")
    if explorer.message:
        screen.show(explorer.message, style="yellow")
    screen.show(HELP, style="dim")


def run_json(explorer: Explorer) -> None:
    """The same without a screen: a JSON line for the beginning, and one for each line read."""
    while not explorer.done:
        now = explorer.now
        screen.show_json(
            {
                "text": explorer.text,
                "ids": list(now.ids),
                "temperature": now.temperature,
                "top_k": now.top_k,
                "message": explorer.message,
                "predictions": [
                    {"id": one.id, "text": explorer.lm.text_of(one.id), "probability": one.probability}
                    for one in explorer.candidates()
                ],
            }
        )
        line = screen.ask("> ")
        if line is None:
            return
        explorer.take(line)
