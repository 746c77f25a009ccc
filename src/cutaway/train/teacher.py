"""Distillation: a student learns from its data and from a teacher, a finished model that reads the same batch.

    soft x the soft loss        the teacher's chances, at a temperature, in place of one right token
    + hard x the task's loss    as without a teacher
    + cosine x the cosine loss  the student's vectors should point where the teacher's do

The three are those of DistilBERT (Sanh et al. 2019), as are the weights and the temperature that a recipe begins with.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recomputed

from cutaway import checkpoint
from cutaway.checkpoint.locate import locate
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture, blocks
from cutaway.runtime.fingerprint import fingerprint
from cutaway.tasks import Loss, Seen, Task
from cutaway.tasks.token_loss import piece_rows
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import recipe as recipes
from cutaway.train.recipe import Recipe

if TYPE_CHECKING:
    from cutaway.train.plan import Plan

OWN = frozenset(
    {"vocabulary", "context", "width", "layers", "heads", "dropout", "head", "labels", "pooler", "end_token"}
)
"""Of a shape, what a student has by other settings, or by its task."""


class Teacher:
    """A finished model, and how much each of the three losses counts."""

    def __init__(self, model: nn.Module, settings: recipes.Teacher):
        self.model, self.settings = model.eval().requires_grad_(False), settings

    def loss(self, task: Task, student: nn.Module, batch: Any, scale: float = 1.0) -> Loss:
        """What a student is to be better at: the three losses together, for `Batch.count` of them, times `scale`."""
        seen = task.see(student, batch)
        with torch.no_grad():
            right = task.see(self.model, batch)
        own = task.seen_loss(student, seen, batch, scale)
        count, total = (batch["targets"] != -100).sum(), own.sum * self.settings.hard
        places = seen.compared.nonzero(as_tuple=True)
        mine, theirs = seen.hidden[places], right.hidden[places]  # [token, width]
        if self.settings.soft:
            soft = soft_loss(seen, right, mine, theirs, self.settings.temperature)
            total = total + self.settings.soft * soft * count * scale
        if self.settings.cosine:
            total = total + self.settings.cosine * cosine_loss(mine, theirs) * count * scale
        return Loss(total, own.metrics)


def soft_loss(student: Seen, teacher: Seen, mine: Tensor, theirs: Tensor, temperature: float) -> Tensor:
    """The mean over tokens of KL(teacher || student), both softened, times the temperature's square.

    Piece by piece, each computed again on the way back: the scores of all tokens are never held at once.
    """

    def piece(one: Tensor, other: Tensor) -> Tensor:
        said, right = student.score(one).float(), teacher.score(other).float()  # [token, vocabulary]
        entries = min(said.shape[-1], right.shape[-1])  # beyond these there are no tokens, only rows that fill up
        chances = (right[:, :entries] / temperature).softmax(-1)
        return F.kl_div((said[:, :entries] / temperature).log_softmax(-1), chances, reduction="sum")

    rows = piece_rows(len(mine), student.entries)
    parts = [
        recomputed(piece, mine[at : at + rows], theirs[at : at + rows], use_reentrant=False)
        for at in range(0, len(mine), rows)
    ]
    total: Tensor = torch.stack(parts).sum()
    return total / max(1, len(mine)) * temperature**2


def cosine_loss(mine: Tensor, theirs: Tensor) -> Tensor:
    """One minus the cosine of the two vectors of a token, the mean over tokens."""
    return (1 - F.cosine_similarity(mine.float(), theirs.float(), dim=-1)).mean()


def read_teacher(recipe: Recipe, device: torch.device) -> Teacher:
    """The teacher that a recipe names; refused if it is not the one that the training began with."""
    model = checkpoint.read_model(locate(recipe.teacher.from_))
    if recipe.teacher.weights not in ("", found := fingerprint(model)):
        raise CutawayError(
            f"The teacher in {recipe.teacher.from_} has other weights ({found}) than when this training began "
            f"({recipe.teacher.weights}): give it the same one (teacher.from), or start a new training."
        )
    return Teacher(model.to(device), recipe.teacher)


def choose_for_teacher(plan: Plan, task: Task) -> None:
    """What follows from the teacher: its weights as they are now and, if the student starts as it, the shape."""
    folder = locate(plan.recipe.teacher.from_)
    config = checkpoint.read_config(folder)
    if plan.recipe.teacher.start:
        choose_shape(plan, task, config)
    elif plan.recipe.teacher.cosine and not plan.recipe.model.from_ and hasattr(config, "width"):
        plan.choose("model.width", config.width, "the teacher's, so that their vectors can be compared")
    plan.choose("teacher.weights", fingerprint(checkpoint.read_model(folder)), "the teacher as it is now")


def choose_shape(plan: Plan, task: Task, config: Any) -> None:
    """The student's shape: the teacher's, with half of its blocks where nobody says."""
    model, name = plan.recipe.model, plan.recipe.teacher.from_
    if model.from_:
        raise CutawayError(
            f"A student starts from {model.from_} (model.from) or from its teacher (teacher.start): leave one of the "
            "two out."
        )
    kind = model.kind or task.new_model["kind"]
    if kind != config.kind or not blocks_in(config):
        title, other = architecture(config.kind).title, architecture(kind).title
        raise CutawayError(f"teacher.start takes over blocks, and the teacher is a {title}, the student a {other}.")
    for key in ("width", "heads"):
        if getattr(model, key) not in (0, getattr(config, key)):
            raise CutawayError(
                f"The recipe says model.{key} = {getattr(model, key):,}, and the teacher has "
                f"{getattr(config, key):,}: leave it out, or do not start as the teacher (teacher.start)."
            )
        plan.choose(f"model.{key}", getattr(config, key), "the teacher's")
    plan.choose("model.context", config.context, "the teacher's")
    plan.choose("model.layers", -(-config.layers // 2), f"half of the teacher's {config.layers}")
    if plan.recipe.model.layers > config.layers:
        raise CutawayError(
            f"The recipe says model.layers = {plan.recipe.model.layers}, and {name} has {config.layers}: a student "
            "cannot start with more blocks than its teacher has."
        )
    plain = type(config)()
    rest = {one.name: getattr(config, one.name) for one in fields(config) if one.init and one.name not in OWN}
    rest = {key: value for key, value in rest.items() if value != getattr(plain, key) and value is not None}
    plan.recipe = plan.recipe.but({"model": {"shape": {**rest, **model.shape}}})


def blocks_in(config: Any) -> bool:
    return all(hasattr(config, key) for key in ("layers", "width", "heads", "context"))


def check_teacher(recipe: Recipe, task: Task, tokenizer: Tokenizer, shape: Any) -> None:
    """Refuse, before anything is prepared, a teacher whose scores or vectors cannot be compared with the student's."""
    name, folder = recipe.teacher.from_, locate(recipe.teacher.from_)
    config = checkpoint.read_config(folder)
    task.check_teacher(config, name)
    kind = shape.kind if shape is not None else recipe.model.kind or task.new_model["kind"]
    if kind != config.kind:
        title, other = architecture(config.kind).title, architecture(kind).title
        raise CutawayError(f"The teacher {name} is a {title}, and the student a {other}: take a teacher of its kind.")
    theirs, ours = Tokenizer.load(folder).vocabulary, tokenizer.vocabulary
    unlike = [token for token, number in theirs.items() if ours.get(token) != number]
    if unlike:
        raise CutawayError(
            f"The teacher {name} has another vocabulary ({len(theirs):,} entries, of which {unlike[0]!r} is not the "
            f"same in the student's {len(ours):,}), so their scores cannot be compared: take the teacher's "
            f"(model.tokenizer = {name}), or another teacher."
        )
    length = recipe.train.length or recipe.model.context
    if length > getattr(config, "context", length):
        raise CutawayError(
            f"The teacher {name} reads {config.context:,} tokens, and texts of up to {length:,} are to be learned: "
            f"set train.length = {config.context}."
        )
    widths = getattr(shape, "width", recipe.model.width), getattr(config, "width", 0)
    if recipe.teacher.cosine and widths[0] != widths[1]:
        raise CutawayError(
            f"The cosine loss compares vectors of equal width, and the teacher {name} has {widths[1]:,} numbers where "
            f"the student has {widths[0]:,}: set teacher.cosine = 0, or model.width = {widths[1]}."
        )


@torch.no_grad()
def start_as(student: nn.Module, teacher: nn.Module) -> None:
    """Give a student the teacher's weights, those of some of its blocks, spread evenly from the first to the last."""
    taken = spread(len(blocks(teacher)), len(blocks(student)))
    weights = teacher.state_dict()
    for name, own in student.state_dict().items():
        head, number, *_ = [*name.split("."), ""]
        source = ".".join(["blocks", str(taken[int(number)]), *name.split(".")[2:]]) if head == "blocks" else name
        if (given := weights.get(source)) is None:
            continue
        if given.shape[1:] != own.shape[1:] or (head == "blocks" and given.shape != own.shape):
            raise CutawayError(
                f"The student's {name} has the shape {list(own.shape)}, and the teacher's {list(given.shape)}: leave "
                "out what model.shape changes, or do not start as the teacher (teacher.start)."
            )
        rows = min(len(own), len(given))  # fewer positions, say
        own[:rows] = given[:rows]


def spread(count: int, wanted: int) -> list[int]:
    """So many of `count` blocks, spread evenly, the first and the last among them: of 12 six are 0 2 4 7 9 11."""
    if wanted == 1:
        return [0]
    return [round(number * (count - 1) / (wanted - 1)) for number in range(wanted)]


def require_comparable(task: Task) -> None:
    """Refuse a task in which there is nothing to compare."""
    if type(task).see is Task.see:
        raise CutawayError(
            f"A student cannot learn {task.name} from a teacher: that is there for masked words, and for tasks whose "
            "answer is written, such as language."
        )
